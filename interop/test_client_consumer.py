"""Ottla's client reads the same records from Apache Kafka as librdkafka."""

import asyncio
from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition as ConfluentPartition

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.kafka_clients import Admin, ConsumedRecord, consume_all
from interop.kafka_content import BROKER_PROPERTIES, fill
from ottla.client import Client
from ottla.client.consumer.consumer import Consumer
from ottla.core.ids import TopicPartition
from ottla.records.reader import Record

IsolationLevel = Literal["read_uncommitted", "read_committed"]


@pytest.fixture(scope="module")
def broker(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(kafka, tmp_path_factory.mktemp("kafka-read"), BROKER_PROPERTIES) as broker:
        fill(broker)
        yield broker


@pytest.fixture(scope="module")
def partitions(broker: KafkaBroker) -> list[ConfluentPartition]:
    """Of all topics except Kafka's internal ones, whose contents change."""
    return [one for one in Admin(broker.bootstrap).partitions() if not one.topic.startswith("__")]


def _record(record: Record) -> ConsumedRecord:
    return ConsumedRecord(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp=record.timestamp,
        is_log_append_time=record.is_log_append_time,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )


async def _are_read(consumer: Consumer[bytes, bytes], ends: dict[TopicPartition, int]) -> bool:
    return all([await consumer.position(at) >= end for at, end in ends.items()])


async def _read(
    bootstrap: str, wanted: list[TopicPartition], isolation_level: IsolationLevel, *, as_columns: bool = False
) -> list[Any]:
    found: list[Any] = []
    async with (
        Client(bootstrap) as client,
        client.consumer(isolation_level=isolation_level, auto_offset_reset="earliest") as consumer,
    ):
        await consumer.assign(wanted)
        ends = await consumer.end_offsets(*wanted)
        while not await _are_read(consumer, ends):
            if as_columns:
                found.append(await consumer.fetch_arrow(timeout_ms=1000))
            else:
                found += await consumer.poll(timeout_ms=1000)
    return found


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_every_kind_of_record_is_read_as_librdkafka_reads_it(
    broker: KafkaBroker, partitions: list[ConfluentPartition], isolation_level: IsolationLevel
) -> None:
    expected = consume_all(broker.bootstrap, partitions, isolation_level).records
    wanted = [TopicPartition(one.topic, one.partition) for one in partitions]

    found = asyncio.run(_read(broker.bootstrap, wanted, isolation_level))

    by_place = sorted(map(_record, found), key=lambda one: (one.topic, one.partition, one.offset))
    assert by_place == sorted(expected, key=lambda one: (one.topic, one.partition, one.offset))
    assert by_place != []


def test_columns_have_the_same_records(broker: KafkaBroker, partitions: list[ConfluentPartition]) -> None:
    expected = consume_all(broker.bootstrap, partitions, "read_committed").records
    wanted = [TopicPartition(one.topic, one.partition) for one in partitions]

    tables = asyncio.run(_read(broker.bootstrap, wanted, "read_committed", as_columns=True))

    places = [("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")]
    table = pa.concat_tables(tables).sort_by(places)
    assert table["value"].to_pylist() == [one.value for one in expected]
    assert table["key"].to_pylist() == [one.key for one in expected]
    assert table["timestamp"].cast(pa.int64()).to_pylist() == [one.timestamp for one in expected]
