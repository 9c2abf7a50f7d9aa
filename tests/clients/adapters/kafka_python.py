"""kafka-python."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import kafka
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

from ottla.core.ids import TopicPartition as At

from .base import (
    DEFAULT_CONSUMER,
    DEFAULT_PRODUCER,
    PATIENCE_S,
    Client,
    Committed,
    Consumer,
    ConsumerOptions,
    Placed,
    Producer,
    ProducerOptions,
    Received,
    Refused,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .base import Headers


def _refused(error: BaseException) -> Refused:
    return Refused(getattr(error, "errno", -1), repr(error))


class KafkaPythonProducer(Producer):
    def __init__(self, servers: str, options: ProducerOptions) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=servers,
            acks=options.acks,
            enable_idempotence=options.is_idempotent,
            compression_type=options.compression,
            max_request_size=options.max_request_bytes,
            linger_ms=options.linger_ms,
            reconnect_backoff_max_ms=250,
            retry_backoff_ms=50,
        )

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Future[Placed]:
        placed: Future[Placed] = Future()
        sent = self._producer.send(topic, value, key, list(headers), partition, timestamp)
        sent.add_callback(lambda found: placed.set_result(Placed(found.partition, found.offset)))
        sent.add_errback(lambda error: placed.set_exception(_refused(error)))
        return placed

    def flush(self) -> None:
        self._producer.flush(PATIENCE_S)

    def close(self) -> None:
        self._producer.close(PATIENCE_S)


class KafkaPythonConsumer(Consumer):
    def __init__(self, servers: str, options: ConsumerOptions) -> None:
        more: dict[str, Any] = {}
        if options.is_cooperative:
            more["partition_assignment_strategy"] = [CooperativeStickyAssignor]
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=servers,
            group_id=options.group,
            group_instance_id=options.instance,
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=100,
            auto_offset_reset="earliest",
            enable_auto_commit=options.commits_by_itself,
            auto_commit_interval_ms=100,
            fetch_max_wait_ms=100,
            metadata_max_age_ms=options.metadata_max_age_ms,
            isolation_level="read_committed" if options.is_committed_only else "read_uncommitted",
            allow_auto_create_topics=options.creates_topics,
            reconnect_backoff_max_ms=250,
            retry_backoff_ms=50,
            **more,
        )

    def subscribe(self, *topics: str) -> None:
        self._consumer.subscribe(list(topics))

    def assign(self, *partitions: At) -> None:
        self._consumer.assign([_theirs(at) for at in partitions])

    def assignment(self) -> set[At]:
        return {At(*found) for found in self._consumer.assignment()}

    def poll(self, timeout_s: float = 0.1, most: int = 500) -> list[Received]:
        try:
            found = self._consumer.poll(round(timeout_s * 1000), max_records=most)
        except KafkaError as error:
            if error.retriable:  # reported while it reconnects automatically
                return []
            raise _refused(error) from error
        return [
            Received(
                record.topic,
                record.partition,
                record.offset,
                record.timestamp,
                record.key,
                record.value,
                tuple(record.headers),
            )
            for records in found.values()
            for record in records
        ]

    def seek(self, at: At, offset: int) -> None:
        self._consumer.seek(_theirs(at), offset)

    def position(self, at: At) -> int:
        return self._consumer.position(_theirs(at))  # type: ignore[no-any-return]

    def pause(self, at: At) -> None:
        self._consumer.pause(_theirs(at))

    def resume(self, at: At) -> None:
        self._consumer.resume(_theirs(at))

    def begin_and_end(self, at: At) -> tuple[int, int]:
        theirs = _theirs(at)
        begin, end = self._consumer.beginning_offsets([theirs]), self._consumer.end_offsets([theirs])
        return begin[theirs], end[theirs]

    def offset_for_time(self, at: At, timestamp: int) -> int | None:
        found = self._consumer.offsets_for_times({_theirs(at): timestamp})[_theirs(at)]
        return None if found is None else found.offset

    def commit(self, offsets: Mapping[At, Committed] | None = None) -> None:
        theirs = None
        if offsets is not None:
            theirs = {
                _theirs(at): OffsetAndMetadata(offset, metadata, -1) for at, (offset, metadata) in offsets.items()
            }
        try:
            self._consumer.commit(theirs, timeout_ms=PATIENCE_S * 1000)
        except KafkaError as error:
            raise _refused(error) from error

    def committed(self, at: At) -> Committed | None:
        found = self._consumer.committed(_theirs(at), metadata=True, timeout_ms=PATIENCE_S * 1000)
        return None if found is None else Committed(found.offset, found.metadata)

    def close(self) -> None:
        self._consumer.close(timeout_ms=PATIENCE_S * 1000)


def _theirs(at: At) -> TopicPartition:
    return TopicPartition(at.topic, at.partition)


class KafkaPython(Client):
    name = "kafka-python"
    # If a poll ends while an assignment is on its way, kafka-python 3.0.12 may lose it and never get one again.
    idle_poll_s = 0.3

    def producer(self, servers: str, options: ProducerOptions = DEFAULT_PRODUCER) -> Producer:
        return KafkaPythonProducer(servers, options)

    def consumer(self, servers: str, options: ConsumerOptions = DEFAULT_CONSUMER) -> Consumer:
        return KafkaPythonConsumer(servers, options)
