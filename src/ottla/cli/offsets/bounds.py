"""Offset bounds of partitions, from their leaders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.cli.messages.starting_points import AtTime
from ottla.cli.offsets.resets import Bounds
from ottla.client.admin.requests import raise_if_error
from ottla.client.errors import BrokerError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.cli.messages.starting_points import StartingPoint
    from ottla.cli.offsets.resets import Shift
    from ottla.client.admin.admin import Admin
    from ottla.core.ids import TopicPartition


async def partitions_of(admin: Admin, topics: Iterable[str]) -> dict[str, list[int]]:
    """The partitions of topics, which must exist."""
    described = await admin.describe_topics(topics)
    return {name: list(raise_if_error(view).partitions) for name, view in described.items()}


async def bounds_of(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
    """Bounds of all partitions; raises the first error."""
    asked = list(partitions)
    known = await known_bounds_of(admin, asked)
    return {where: raise_if_error(known[where]) for where in asked}


async def known_bounds_of(
    admin: Admin, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Bounds | BrokerError]:
    """Bounds of partitions whose leaders answer, and the errors of the others."""
    asked = list(partitions)
    first = await admin.earliest_offsets(asked)
    end = await admin.latest_offsets(asked)
    return {where: _bounds(first[where], end[where]) for where in asked}


def _bounds(first: object, end: object) -> Bounds | BrokerError:
    for each in (first, end):
        if isinstance(each, BrokerError):
            return each
    return Bounds(first.offset, end.offset)  # type: ignore[attr-defined]


async def offsets_at_time(
    admin: Admin, point: StartingPoint | Shift, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int | None]:
    """The first offset of each partition at or after the time, None if there is none; empty if it is not a time."""
    if not isinstance(point, AtTime):
        return {}
    found = await admin.offsets_at(dict.fromkeys(partitions, point.timestamp_ms))
    return {where: offset if (offset := raise_if_error(each).offset) >= 0 else None for where, each in found.items()}
