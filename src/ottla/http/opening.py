"""Partitions one after the other, without holding up the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.http.endpoints import others

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from ottla.broker.partition import Partition

_TURN_PARTITIONS: Final = 100


async def opened(partitions: Iterable[Partition]) -> AsyncIterator[Partition]:
    """Each of them, for a look at its log. Opening one takes milliseconds, so others get their turn after each."""
    for number, partition in enumerate(list(partitions), 1):
        was_open = partition.is_open
        yield partition
        if not was_open or number % _TURN_PARTITIONS == 0:
            await others()
