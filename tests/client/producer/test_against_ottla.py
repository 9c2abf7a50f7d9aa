"""The producer with a real broker, verified by librdkafka."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer as Confluent
from tests.broker import making
from tests.broker.raw_client import RawClient
from tests.client.running import LOOPS, run

import ottla
from ottla.broker.config import BrokerConfig
from ottla.broker.settings import Settings
from ottla.client.client import Client
from ottla.client.errors import RecordTooLarge, UnknownTopic
from ottla.net.config import NetConfig
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

from .reading import Stored, read_all, values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ottla.Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker.bootstrap_servers


def create(servers: str, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
    with RawClient(servers) as client:
        making.create_topic(client, name, partitions, configs)


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_record_arrives_as_it_was_sent(servers: str, loop: Any) -> None:
    name = f"as-sent-{loop.__module__}"

    async def scenario() -> None:
        async with Client(servers) as client, client.producer() as producer:
            await producer.send(name, b"v", key=b"k", timestamp_ms=1234, headers=[("a", b"1"), ("b", None)])
            place = await (await producer.send(name, None, key=b"", timestamp_ms=1235))
            assert (place.topic, place.partition, place.offset, place.timestamp) == (name, 0, 1, 1235)

    run(scenario(), loop)

    assert read_all(servers, name) == [
        Stored(0, 1234, b"k", b"v", (("a", b"1"), ("b", None))),
        Stored(1, 1235, b"", None, ()),
    ]


@pytest.mark.parametrize(
    ("compression", "level"),
    [
        ("none", None),
        ("gzip", None),
        ("gzip", 1),
        ("snappy", None),
        ("lz4", None),
        ("lz4", 9),
        ("zstd", None),
        ("zstd", 15),
    ],
)
def test_every_codec_is_read_by_other_clients(servers: str, compression: Any, level: int | None) -> None:
    name = f"compressed-{compression}-{level}"
    sent = [b"record %d " % i * 20 for i in range(1000)]

    async def scenario() -> None:
        options = {"compression": compression, "compression_level": level, "producer_max_bytes": 32 * 1024}
        async with Client(servers) as client, client.producer(**options) as producer:
            for value in sent:
                await producer.send(name, value)

    run(scenario())

    assert values(servers, name) == sent


@pytest.mark.parametrize(("acks", "idempotence"), [(0, False), (1, False), ("all", False), ("all", True)])
def test_every_acks_setting_delivers_in_order(servers: str, acks: Any, idempotence: bool) -> None:
    name = f"acks-{acks}-{idempotence}"
    sent = [b"%d" % i * 100 for i in range(2000)]

    async def scenario() -> list[int]:
        options = {"acks": acks, "idempotence": idempotence, "producer_max_bytes": 16 * 1024}
        async with Client(servers) as client:
            async with client.producer(**options) as producer:
                deliveries = [await producer.send(name, value) for value in sent]
                offsets = [place.offset for place in await asyncio.gather(*deliveries)]
            # There is no response with acks=0: another request shows that it has arrived.
            await client.router.refresh([name])
            return offsets

    offsets = run(scenario())

    assert offsets == ([-1] * 2000 if acks == 0 else list(range(2000)))
    if acks != 0:
        assert values(servers, name) == sent


def test_keys_are_partitioned_as_by_librdkafka(servers: str) -> None:
    keys = [b"", b"a", b"\x00\xff", *(b"key-%d" % i for i in range(500)), *(bytes([i]) * i for i in range(256))]
    for name in ("keys-ours", "keys-theirs"):
        create(servers, name, 7)

    async def scenario() -> list[int]:
        async with Client(servers) as client, client.producer() as producer:
            deliveries = [await producer.send("keys-ours", key=key) for key in keys]
            return [place.partition for place in await asyncio.gather(*deliveries)]

    theirs: dict[bytes, int] = {}
    confluent = Confluent({"bootstrap.servers": servers, "partitioner": "murmur2"})
    for key in keys:
        confluent.produce(
            "keys-theirs", key=key, callback=lambda _error, message: theirs.update({message.key(): message.partition()})
        )
    confluent.flush(20)

    assert run(scenario()) == [theirs[key] for key in keys]
    assert set(theirs.values()) == set(range(7))


def test_partitions_added_at_run_time_are_found_and_used(servers: str) -> None:
    create(servers, "growing", 1)

    async def scenario() -> set[int]:
        async with Client(servers, metadata_max_age_ms=20) as client, client.producer() as producer:
            await (await producer.send("growing", b"first"))
            changed = asyncio.Event()
            unsubscribe = client.router.subscribe_to_changes(changed.set)
            with RawClient(servers) as raw:
                more = CreatePartitionsTopic(name="growing", count=4, assignments=None)
                raw.ask(CreatePartitionsRequest(topics=(more,), timeout_ms=1000, validate_only=False))
            await changed.wait()
            unsubscribe()
            deliveries = [await producer.send("growing", b"v", key=b"%d" % i) for i in range(50)]
            return {place.partition for place in await asyncio.gather(*deliveries)}

    assert run(scenario()) == {0, 1, 2, 3}


def test_records_without_a_key_are_spread_over_all_partitions(servers: str) -> None:
    create(servers, "spread", 3)

    async def scenario() -> None:
        async with Client(servers) as client, client.producer(producer_max_bytes=4096) as producer:
            for i in range(3000):
                await producer.send("spread", b"%d" % i * 10)

    run(scenario())

    stored = [values(servers, "spread", partition) for partition in range(3)]
    assert all(stored)
    assert sorted(value for each in stored for value in each if value) == sorted(b"%d" % i * 10 for i in range(3000))


def test_a_record_larger_than_a_buffer_is_refused_by_send(servers: str) -> None:
    async def scenario() -> None:
        async with Client(servers) as client, client.producer() as producer:
            with pytest.raises(RecordTooLarge, match="raise producer_max_bytes"):
                await producer.send("large", b"x" * (1 << 20))
            await producer.send("large", b"small")

    run(scenario())

    assert values(servers, "large") == [b"small"]


def test_a_record_larger_than_the_topics_limit_fails_when_awaited(servers: str) -> None:
    create(servers, "narrow", configs={"max.message.bytes": "2000"})

    async def scenario() -> None:
        async with Client(servers) as client, client.producer() as producer:
            with pytest.raises(RecordTooLarge, match=r"max\.message\.bytes"):
                await (await producer.send("narrow", b"x" * 3000))
            await producer.send("narrow", b"small")

    run(scenario())

    assert values(servers, "narrow") == [b"small"]


def test_batches_larger_than_the_topics_limit_are_split(servers: str) -> None:
    create(servers, "splitting", configs={"max.message.bytes": "2000"})
    sent = [b"%03d" % i * 30 for i in range(500)]

    async def scenario() -> list[int]:
        async with Client(servers) as client, client.producer(producer_max_bytes=16 * 1024) as producer:
            deliveries = [await producer.send("splitting", value) for value in sent]
            return [place.offset for place in await asyncio.gather(*deliveries)]

    assert run(scenario()) == list(range(500))
    assert values(servers, "splitting") == sent


def test_an_unknown_topic_is_an_error_of_send() -> None:
    settings = Settings(broker=BrokerConfig(auto_create_topics=False), net=NetConfig(port=0))

    async def scenario(servers: str) -> None:
        async with Client(servers, leader_election_retry_ms=1) as client, client.producer() as producer:
            with pytest.raises(UnknownTopic, match=r"topic 'nowhere'.*create it first"):
                await producer.send("nowhere", b"v")

    with ottla.Broker(settings=settings) as broker:
        run(scenario(broker.bootstrap_servers))


def test_an_unknown_partition_is_an_error_of_send(servers: str) -> None:
    async def scenario() -> None:
        async with Client(servers) as client, client.producer() as producer:
            with pytest.raises(UnknownTopic, match=r"no partition 5 in topic single \(it has 1\)"):
                await producer.send("single", b"v", partition=5)

    run(scenario())


def test_many_tasks_may_send_at_once(servers: str) -> None:
    create(servers, "tasks", 2)

    async def scenario() -> None:
        async with Client(servers) as client, client.producer(producer_max_bytes=2048) as producer:

            async def send(name: int) -> None:
                for i in range(100):
                    await producer.send("tasks", b"%d %d" % (name, i), partition=name % 2)

            await asyncio.gather(*map(send, range(20)))

    run(scenario())

    for partition in range(2):
        stored = values(servers, "tasks", partition)
        assert len(stored) == 1000
        for name in range(partition, 20, 2):
            mine = [value for value in stored if value is not None and value.startswith(b"%d " % name)]
            assert mine == [b"%d %d" % (name, i) for i in range(100)]
