"""Common operations on consumers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from ottla.client.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ottla.client.consumer.consumer import Consumer

PATIENCE_MS: Final = 20_000
FOR_EVER_MS: Final = 600_000
"""A long poll that lasts longer than any test, so that a test fails if it waits for its end."""


@asynccontextmanager
async def consuming(servers: str, *topics: str, **options: Any) -> AsyncIterator[Consumer[Any, Any]]:
    async with (
        Client(servers) as client,
        client.consumer(*topics, **{"auto_offset_reset": "earliest", **options}) as consumer,
    ):
        yield consumer


async def read(consumer: Consumer[Any, Any], count: int, at_a_time: int = 500) -> list[Any]:
    """Exactly this many records."""
    records: list[Any] = []
    while len(records) < count:
        came = await consumer.poll(min(at_a_time, count - len(records)), PATIENCE_MS)
        assert came, f"only {len(records)} of {count} records came"
        records += came
    return records


async def values(consumer: Consumer[Any, Any], count: int) -> list[Any]:
    return [record.value for record in await read(consumer, count)]


async def soon(work: Any) -> Any:
    """Its result, within a short timeout."""
    return await asyncio.wait_for(work, PATIENCE_MS / 1000)
