"""confluent-kafka, which is librdkafka."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

import confluent_kafka
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, Message, TopicPartition

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

_QUIET: Final = {"log_level": 0, "socket.nagle.disable": True, "reconnect.backoff.max.ms": 250}
_NOT_ANSWERS: Final = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
)
"""Reported while librdkafka reconnects automatically."""


def _refused(error: KafkaError) -> Refused:
    return Refused(error.code(), error.str())


class ConfluentProducer(Producer):
    def __init__(self, servers: str, options: ProducerOptions) -> None:
        self._producer = confluent_kafka.Producer(
            {
                **_QUIET,
                "bootstrap.servers": servers,
                "acks": options.acks,
                "enable.idempotence": options.is_idempotent,
                "compression.type": options.compression or "none",
                "message.max.bytes": options.max_request_bytes,
                "linger.ms": options.linger_ms,
                "retry.backoff.ms": 50,
            }
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

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                placed.set_exception(_refused(error))
            else:
                placed.set_result(Placed(message.partition(), message.offset()))  # type: ignore[arg-type]

        more: dict[str, Any] = {} if timestamp is None else {"timestamp": timestamp}
        self._producer.produce(
            topic,
            value,
            key,
            partition=-1 if partition is None else partition,
            on_delivery=delivered,
            headers=list(headers),
            **more,
        )
        self._producer.poll(0)
        return placed

    def flush(self) -> None:
        left = self._producer.flush(PATIENCE_S)
        assert not left, f"{left} records were never acknowledged"

    def close(self) -> None:
        self._producer.flush(PATIENCE_S)


class ConfluentConsumer(Consumer):
    def __init__(self, servers: str, options: ConsumerOptions) -> None:
        config: dict[str, Any] = {
            **_QUIET,
            "bootstrap.servers": servers,
            # librdkafka requires a group id even if it is not used.
            "group.id": options.group or "none",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": options.commits_by_itself,
            "auto.commit.interval.ms": 100,
            "fetch.wait.max.ms": 100,
            "allow.auto.create.topics": options.creates_topics,
            "topic.metadata.refresh.interval.ms": options.metadata_max_age_ms,
            "isolation.level": "read_committed" if options.is_committed_only else "read_uncommitted",
        }
        if options.follows_broker:
            config["group.protocol"] = "consumer"
        else:
            config["session.timeout.ms"] = options.session_timeout_ms
            config["heartbeat.interval.ms"] = 100
        if options.instance is not None:
            config["group.instance.id"] = options.instance
        if options.is_cooperative:
            config["partition.assignment.strategy"] = "cooperative-sticky"
        self._consumer = confluent_kafka.Consumer(config)

    def subscribe(self, *topics: str) -> None:
        self._consumer.subscribe(list(topics))

    def assign(self, *partitions: At) -> None:
        self._consumer.assign([TopicPartition(*_pair(at)) for at in partitions])

    def assignment(self) -> set[At]:
        return {At(found.topic, found.partition) for found in self._consumer.assignment()}

    def poll(self, timeout_s: float = 0.1, most: int = 500) -> list[Received]:
        # `consume` waits for the requested number or its timeout, so it is called with a timeout only for the first
        # record.
        messages = self._consumer.consume(1, timeout_s)
        if messages and most > 1:
            messages += self._consumer.consume(most - 1, 0)
        received = []
        for message in messages:
            error = message.error()
            if error is None:
                received.append(_received(message))
            elif error.code() not in _NOT_ANSWERS:
                raise _refused(error)
        return received

    def seek(self, at: At, offset: int) -> None:
        # Refused until the fetcher of a fresh assignment has started.
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._consumer.seek(TopicPartition(*_pair(at), offset))
            except KafkaException as refused:
                if refused.args[0].code() != KafkaError._STATE or time.monotonic() > until:
                    raise _refused(refused.args[0]) from refused
                self._consumer.poll(0.01)

    def position(self, at: At) -> int:
        [found] = self._consumer.position([TopicPartition(*_pair(at))])
        return found.offset

    def pause(self, at: At) -> None:
        self._consumer.pause([TopicPartition(*_pair(at))])

    def resume(self, at: At) -> None:
        self._consumer.resume([TopicPartition(*_pair(at))])

    def begin_and_end(self, at: At) -> tuple[int, int]:
        begin, end = self._consumer.get_watermark_offsets(TopicPartition(*_pair(at)), timeout=PATIENCE_S)
        return begin, end

    def offset_for_time(self, at: At, timestamp: int) -> int | None:
        [found] = self._consumer.offsets_for_times([TopicPartition(*_pair(at), timestamp)], timeout=PATIENCE_S)
        return found.offset if found.offset >= 0 else None

    def commit(self, offsets: Mapping[At, Committed] | None = None) -> None:
        more = {}
        if offsets is not None:
            more["offsets"] = [
                TopicPartition(at.topic, at.partition, offset, metadata) for at, (offset, metadata) in offsets.items()
            ]
        try:
            self._consumer.commit(asynchronous=False, **more)
        except KafkaException as refused:
            if refused.args[0].code() != KafkaError._NO_OFFSET:
                raise _refused(refused.args[0]) from refused

    def committed(self, at: At) -> Committed | None:
        [found] = self._consumer.committed([TopicPartition(*_pair(at))], timeout=PATIENCE_S)
        return None if found.offset == OFFSET_INVALID else Committed(found.offset, found.metadata or "")

    def close(self) -> None:
        self._consumer.close()


def _pair(at: At) -> tuple[str, int]:
    return at.topic, at.partition


def _received(message: Message) -> Received:
    _, timestamp = message.timestamp()
    return Received(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        timestamp,
        message.key(),
        message.value(),
        tuple(message.headers() or ()),  # type: ignore[arg-type]
    )


class Confluent(Client):
    name = "confluent"

    def producer(self, servers: str, options: ProducerOptions = DEFAULT_PRODUCER) -> Producer:
        return ConfluentProducer(servers, options)

    def consumer(self, servers: str, options: ConsumerOptions = DEFAULT_CONSUMER) -> Consumer:
        return ConfluentConsumer(servers, options)
