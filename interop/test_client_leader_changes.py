"""Ottla's client with three Apache Kafka brokers, of which one is killed and another stopped under load."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from ottla.client import Client
from ottla.client.consumer.consumer import Consumer
from ottla.client.errors import ClientError

TOPIC = "watched"
PARTITIONS = 3
KEYS = 10
PATIENCE_S = 120
ENOUGH = 300
"""This many messages are acknowledged between two faults."""
CLUSTER = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "offsets.topic.replication.factor": "3",
}


@pytest.fixture
def brokers(kafka: KafkaArtifacts, tmp_path: Path) -> Iterator[dict[int, KafkaBroker]]:
    """Brokers by id. The first is also the controller, and has no faults."""
    with ExitStack() as running:
        first = running.enter_context(KafkaBroker(kafka, tmp_path / "1", {**CLUSTER, "node.id": "1"}))
        found = {1: first}
        for node_id in (2, 3):
            properties = {**CLUSTER, "node.id": str(node_id)}
            broker = KafkaBroker(kafka, tmp_path / str(node_id), properties, controller=first.controller)
            found[node_id] = running.enter_context(broker)
        yield found


class Load:
    """Sends numbered messages, a few keys in turn, until told to stop; counts those acknowledged."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.sent = 0
        self.acknowledged = 0
        self._is_over = False

    async def run(self) -> None:
        async with self._client.producer(producer_batch_timeout_ms=5) as producer:
            while not self._is_over:
                number = self.sent
                delivery = await producer.send(TOPIC, key=f"{number % KEYS}".encode(), value=f"{number}".encode())
                self.sent += 1
                if self.sent % KEYS == 0:
                    await delivery
                    self.acknowledged = self.sent

    def stop(self) -> None:
        self._is_over = True

    async def go_on(self, task: asyncio.Task[None]) -> None:
        """Return when many more messages have been acknowledged."""
        goal = self.acknowledged + ENOUGH
        async with asyncio.timeout(PATIENCE_S):
            while self.acknowledged < goal:
                await asyncio.sleep(0.05)
                if task.done():
                    task.result()


@asynccontextmanager
async def loaded(client: Client) -> AsyncIterator[tuple[Load, asyncio.Task[None]]]:
    load = Load(client)
    task = asyncio.create_task(load.run())
    try:
        yield load, task
        load.stop()
        await asyncio.wait_for(task, PATIENCE_S)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until_all_replicas_follow(client: Client) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(ClientError):
                described = await client.admin.describe_topic(TOPIC)
                if all(len(partition.isr) == len(partition.replicas) for partition in described.partitions.values()):
                    return
            await asyncio.sleep(0.2)


async def read(consumer: Consumer[bytes, bytes], into: list[tuple[bytes, int]], arrived: asyncio.Event) -> None:
    """Until cancelled; sets the event with each message."""
    async for record in consumer:
        assert record.key is not None
        assert record.value is not None
        into.append((record.key, int(record.value)))
        arrived.set()


def assert_exactly_once_and_in_order(seen: list[tuple[bytes, int]], count: int) -> None:
    by_key: dict[bytes, list[int]] = defaultdict(list)
    for key, number in seen:
        by_key[key].append(number)
    assert len(seen) == count
    assert dict(by_key) == {f"{key}".encode(): list(range(key, count, KEYS)) for key in range(KEYS)}


@pytest.mark.timeout(600)
def test_nothing_is_lost_duplicated_or_reordered_when_leaders_die_and_move(brokers: dict[int, KafkaBroker]) -> None:
    async def scenario() -> None:
        servers = [broker.bootstrap for broker in brokers.values()]
        async with Client(servers) as client, Client(servers) as reading:
            await client.admin.create_topic(
                TOPIC, partitions=PARTITIONS, replication_factor=3, configs={"min.insync.replicas": "2"}
            )
            await until_all_replicas_follow(client)
            seen: list[tuple[bytes, int]] = []
            arrived = asyncio.Event()
            async with reading.consumer(TOPIC, auto_offset_reset="earliest") as consumer:
                reader = asyncio.create_task(read(consumer, seen, arrived))
                async with loaded(client) as (load, task):
                    await load.go_on(task)
                    brokers[2].kill()
                    await load.go_on(task)
                    await asyncio.to_thread(brokers[2].start)
                    await until_all_replicas_follow(client)
                    await asyncio.to_thread(brokers[3].stop)
                    await load.go_on(task)
                    await asyncio.to_thread(brokers[3].start)
                    await until_all_replicas_follow(client)
                    await load.go_on(task)
                async with asyncio.timeout(PATIENCE_S):
                    while len(seen) < load.sent:
                        arrived.clear()
                        await arrived.wait()
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)
            assert_exactly_once_and_in_order(seen, load.sent)

    asyncio.run(scenario())
