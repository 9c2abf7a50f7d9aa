"""Broker kills under load: acknowledged records are stored once and in order."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest
from tests.broker import making
from tests.broker.raw_client import RawClient
from tests.client.running import LOOPS, run
from tests.clients.processes import Server

from ottla.client.client import Client

from .reading import read_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from ottla.client.producer.accumulator import Delivery
    from ottla.client.producer.producer import Producer

QUICK = {"backoff_max_ms": 50, "metadata_refresh_retry_ms": 50, "metadata_refresh_retry_count": 0}
PARTITIONS = 3


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as server:
        with RawClient(server.address) as client:
            making.create_topic(client, "t", PARTITIONS)
        yield server


class Load:
    """Sends numbered records to every partition, one task each, until stopped."""

    def __init__(self, producer: Producer[bytes, bytes]) -> None:
        self._producer = producer
        self._is_over = False
        self._progress = asyncio.Event()
        self._tasks = [asyncio.ensure_future(self._send(partition)) for partition in range(PARTITIONS)]
        self.deliveries: list[list[Delivery]] = [[] for _ in range(PARTITIONS)]

    async def _send(self, partition: int) -> None:
        sent = self.deliveries[partition]
        while not self._is_over:
            delivery = await self._producer.send("t", b"%d" % len(sent), partition=partition)
            sent.append(delivery)
            self._progress.set()
            if len(sent) % 50 == 0:
                await asyncio.sleep(0)

    async def until_acknowledged(self, more: int) -> None:
        """Wait until this many more records of each partition are acknowledged."""
        goals = [len(sent) + more for sent in self.deliveries]
        for sent, goal in zip(self.deliveries, goals, strict=True):
            while len(sent) < goal:
                self._progress.clear()
                await self._progress.wait()
            await sent[goal - 1]

    async def stop(self) -> list[list[int]]:
        """The offset of each record."""
        self._is_over = True
        await asyncio.gather(*self._tasks)
        return [[place.offset for place in await asyncio.gather(*sent)] for sent in self.deliveries]


@pytest.mark.parametrize("how", ["kill", "stop"])
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_restart_under_load_loses_repeats_and_reorders_nothing(
    server: Server, how: str, loop: Callable[[], Any]
) -> None:
    async def scenario() -> list[list[int]]:
        options = {"producer_max_bytes": 2048, "producer_queue_buffers": 8, "producer_batch_timeout_ms": 2}
        async with Client(server.address, **QUICK) as client, client.producer(**options) as producer:
            load = Load(producer)
            for _ in range(3):
                await load.until_acknowledged(more=100)
                await asyncio.to_thread(server.restart, how)
            await load.until_acknowledged(more=100)
            return await load.stop()

    offsets = run(scenario(), loop)

    for partition in range(PARTITIONS):
        stored = [int(record.value or b"") for record in read_all(server.address, "t", partition)]
        assert stored == list(range(len(stored))), "each once and in order"
        assert len(stored) == len(offsets[partition])
        assert all(offset in {number, -1} for number, offset in enumerate(offsets[partition]))


def test_without_idempotence_nothing_is_lost(server: Server) -> None:
    async def scenario() -> int:
        options = {"producer_max_bytes": 2048, "idempotence": False}
        async with Client(server.address, **QUICK) as client, client.producer(**options) as producer:
            load = Load(producer)
            await load.until_acknowledged(more=100)
            await asyncio.to_thread(server.restart, "kill")
            await load.until_acknowledged(more=100)
            return sum(map(len, await load.stop()))

    sent = run(scenario())

    stored = {(p, record.value) for p in range(PARTITIONS) for record in read_all(server.address, "t", p)}
    assert len(stored) == sent


def test_a_broker_restarted_at_another_address_is_found(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    async def scenario() -> list[list[int]]:
        servers = f"{server.address},127.0.0.1:{port}"
        async with Client(servers, **QUICK) as client, client.producer(producer_max_bytes=2048) as producer:
            load = Load(producer)
            await load.until_acknowledged(more=100)
            server.move(port)
            await asyncio.to_thread(server.restart, "kill")
            await load.until_acknowledged(more=100)
            return await load.stop()

    offsets = run(scenario())

    for partition in range(PARTITIONS):
        stored = [int(record.value or b"") for record in read_all(f"127.0.0.1:{port}", "t", partition)]
        assert stored == list(range(len(offsets[partition])))
