"""Helpers for real clients, with every failure an exception."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

TIMEOUT_S = 60.0
LARGEST = 4 << 20
# librdkafka otherwise tells stderr of every broker that goes away, which here is every broker.
QUIET = {"log_level": 2}

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a log starts and ends; control records count, so the last record may be further back."""

    log_start_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class ConsumedRecord:
    """A record as a real consumer got it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    is_log_append_time: bool
    key: bytes | None
    value: bytes | None
    headers: Headers


class Sender:
    """Whatever is sent between two calls of `flush` becomes one batch per partition (up to about 1 MB)."""

    def __init__(self, bootstrap: str, settings: Mapping[str, Any] | None = None) -> None:
        defaults = {
            "bootstrap.servers": bootstrap,
            "linger.ms": 10_000,
            "message.max.bytes": LARGEST,
            **QUIET,
        }
        self.producer = Producer({**defaults, **(settings or {})})
        self._failures: list[KafkaError] = []

    def send(  # noqa: PLR0913
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        timestamp: int,
        partition: int = 0,
        headers: Headers = (),
    ) -> None:
        self.producer.produce(
            topic,
            value=value,
            key=key,
            partition=partition,
            timestamp=timestamp,
            headers=list(headers),
            on_delivery=self._delivered,
        )

    def flush(self) -> None:
        if self.producer.flush(TIMEOUT_S) or self._failures:
            raise RuntimeError(f"records were not delivered: {self._failures}")

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failures.append(error)


class Admin:
    def __init__(self, bootstrap: str) -> None:
        self._client = AdminClient({"bootstrap.servers": bootstrap, **QUIET})

    def create(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        new = NewTopic(topic, partitions, 1, config=dict(config or {}))
        self._client.create_topics([new])[topic].result(TIMEOUT_S)

    def delete(self, topic: str) -> None:
        self._client.delete_topics([topic])[topic].result(TIMEOUT_S)

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        place = TopicPartition(topic, partition, before_offset)
        for done in self._client.delete_records([place]).values():
            done.result(TIMEOUT_S)

    def partitions(self) -> list[TopicPartition]:
        topics = self._client.list_topics(timeout=TIMEOUT_S).topics
        return [TopicPartition(name, one) for name, topic in topics.items() for one in topic.partitions]


@dataclass(frozen=True, slots=True)
class Contents:
    records: tuple[ConsumedRecord, ...]
    """In the order of topics, partitions and offsets."""
    extents: dict[tuple[str, int], Extent]


def consume_all(
    bootstrap: str, partitions: Sequence[TopicPartition], isolation_level: str = "read_uncommitted"
) -> Contents:
    """Every record of these partitions, from their log start to their end; aborted ones too, unless told otherwise."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "never-commits",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": isolation_level,
        # Other questions wait behind a fetch on the same connection.
        "fetch.wait.max.ms": 10,
        "auto.offset.reset": "error",
        **QUIET,
    }
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(one.topic, one.partition, OFFSET_BEGINNING) for one in partitions])
        records = sorted(_until_all_ends(consumer, len(partitions)), key=_place)
        extents = {(one.topic, one.partition): _extent(consumer, one) for one in partitions}
        return Contents(tuple(records), extents)
    finally:
        consumer.close()


def _place(record: ConsumedRecord) -> tuple[str, int, int]:
    return record.topic, record.partition, record.offset


def _extent(consumer: Consumer, partition: TopicPartition) -> Extent:
    found = consumer.get_watermark_offsets(partition, TIMEOUT_S)
    assert found is not None, f"no answer about {partition}"
    return Extent(*found)


def _until_all_ends(consumer: Consumer, unfinished: int) -> Iterable[ConsumedRecord]:
    while unfinished:
        message = consumer.poll(TIMEOUT_S)
        if message is None:
            raise TimeoutError(f"{unfinished} partitions gave nothing for {TIMEOUT_S} s")
        error = message.error()
        if error is None:
            yield _record(message)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
            unfinished -= 1
        else:
            raise KafkaException(error)


def _record(message: Message) -> ConsumedRecord:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    kind, timestamp = message.timestamp()
    return ConsumedRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=timestamp,
        is_log_append_time=kind == TIMESTAMP_LOG_APPEND_TIME,
        key=message.key(),
        value=message.value(),
        headers=tuple(cast("list[tuple[str, bytes | None]]", message.headers() or [])),
    )
