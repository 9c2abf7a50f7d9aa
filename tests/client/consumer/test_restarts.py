"""Broker kills while a consumer reads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.broker.making import create_topic, produce
from tests.broker.raw_client import RawClient
from tests.client.running import run
from tests.clients.processes import Server

from ottla.core.ids import TopicPartition

from .reading import consuming, read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTITIONS = 3
ROUNDS = 3
PER_ROUND = 300


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as server:
        yield server


def write(server: Server, topic: str, first: int) -> None:
    with RawClient(server.address) as raw:
        for number in range(first, first + PER_ROUND):
            produce(raw, topic, b"%d" % number, partition=number % PARTITIONS)


@pytest.mark.parametrize("how", ["kill", "stop"])
@pytest.mark.parametrize("options", [{}, {"group": "readers"}], ids=["alone", "group"])
def test_nothing_is_lost_or_read_twice_and_the_order_is_kept(
    server: Server, name: str, how: str, options: dict[str, str]
) -> None:
    with RawClient(server.address) as raw:
        create_topic(raw, name, PARTITIONS)

    async def scenario() -> None:
        async with consuming(server.address, name, **options) as consumer:
            records = []
            for each in range(ROUNDS):
                reading = asyncio.create_task(read(consumer, PER_ROUND, at_a_time=10))
                await asyncio.to_thread(write, server, name, each * PER_ROUND)
                await asyncio.to_thread(server.restart, how)
                records += await reading
            for partition in range(PARTITIONS):
                values = [int(record.value) for record in records if record.partition == partition]
                assert values == [*range(partition, ROUNDS * PER_ROUND, PARTITIONS)]
                at = TopicPartition(name, partition)
                assert await consumer.position(at) == ROUNDS * PER_ROUND // PARTITIONS

    run(scenario())
