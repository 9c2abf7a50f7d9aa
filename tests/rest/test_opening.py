"""Iterating over all partitions yields to others: after each one that had to be opened, occasionally otherwise."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from ottla.broker.interfaces.partition_facts import opened


@dataclass
class _Partition:
    is_open: bool


async def _turns_of_others(partitions: list[_Partition]) -> int:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    async for partition in opened(partitions):  # type: ignore[arg-type]  # only what is looked at
        partition.is_open = True  # type: ignore[misc]
    counting.cancel()
    return turns


@pytest.mark.parametrize(("is_open", "turns"), [(False, 250), (True, 2)])
def test_iterating_yields_to_others(is_open: bool, turns: int) -> None:  # noqa: FBT001 - as parametrized
    partitions = [_Partition(is_open) for _ in range(250)]

    assert asyncio.run(_turns_of_others(partitions)) == turns
