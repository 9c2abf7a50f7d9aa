"""aiokafka, in an event loop in a separate thread, so that it is called like the others."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import aiokafka
from aiokafka.errors import KafkaError
from aiokafka.structs import OffsetAndMetadata, TopicPartition

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
    from collections.abc import Coroutine, Mapping

    from .base import Headers

T = TypeVar("T")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="aiokafka", daemon=True).start()
    return loop


def _await(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run_coroutine_threadsafe(work, _loop()).result(PATIENCE_S)
    except KafkaError as error:
        raise _refused(error) from error


def _refused(error: BaseException) -> Refused:
    return Refused(getattr(error, "errno", -1), repr(error))


class AiokafkaProducer(Producer):
    def __init__(self, servers: str, options: ProducerOptions) -> None:
        self._producer = _await(self._start(servers, options))

    async def _start(self, servers: str, options: ProducerOptions) -> aiokafka.AIOKafkaProducer:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers,
            acks=options.acks,
            enable_idempotence=options.is_idempotent,
            compression_type=options.compression,
            max_request_size=options.max_request_bytes,
            linger_ms=options.linger_ms,
            retry_backoff_ms=50,
        )
        await producer.start()
        return producer

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

        def delivered(done: asyncio.Future[Any]) -> None:
            if error := done.exception():
                placed.set_exception(_refused(error))
            else:
                found = done.result()
                # None if no answer was asked for.
                placed.set_result(Placed(-1, -1) if found is None else Placed(found.partition, found.offset))

        async def hand_over() -> None:
            sent = await self._producer.send(topic, value, key, partition, timestamp, list(headers))
            sent.add_done_callback(delivered)

        _await(hand_over())
        return placed

    def flush(self) -> None:
        _await(self._producer.flush())

    def close(self) -> None:
        _await(self._producer.stop())


class AiokafkaConsumer(Consumer):
    def __init__(self, servers: str, options: ConsumerOptions) -> None:
        self._consumer = _await(self._start(servers, options))

    async def _start(self, servers: str, options: ConsumerOptions) -> aiokafka.AIOKafkaConsumer:
        consumer = aiokafka.AIOKafkaConsumer(
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
            retry_backoff_ms=50,
        )
        await consumer.start()
        return consumer

    def subscribe(self, *topics: str) -> None:
        _loop().call_soon_threadsafe(self._consumer.subscribe, topics)

    def assign(self, *partitions: At) -> None:
        _loop().call_soon_threadsafe(self._consumer.assign, [_theirs(at) for at in partitions])

    def assignment(self) -> set[At]:
        return {At(*found) for found in self._consumer.assignment()}

    def poll(self, timeout_s: float = 0.1, most: int = 500) -> list[Received]:
        found = _await(self._consumer.getmany(timeout_ms=round(timeout_s * 1000), max_records=most))
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
        _loop().call_soon_threadsafe(self._consumer.seek, _theirs(at), offset)

    def position(self, at: At) -> int:
        return _await(self._consumer.position(_theirs(at)))

    def pause(self, at: At) -> None:
        _loop().call_soon_threadsafe(self._consumer.pause, _theirs(at))

    def resume(self, at: At) -> None:
        _loop().call_soon_threadsafe(self._consumer.resume, _theirs(at))

    def begin_and_end(self, at: At) -> tuple[int, int]:
        theirs = _theirs(at)
        begin = _await(self._consumer.beginning_offsets([theirs]))
        end = _await(self._consumer.end_offsets([theirs]))
        return begin[theirs], end[theirs]

    def offset_for_time(self, at: At, timestamp: int) -> int | None:
        found = _await(self._consumer.offsets_for_times({_theirs(at): timestamp}))[_theirs(at)]
        return None if found is None else found.offset

    def commit(self, offsets: Mapping[At, Committed] | None = None) -> None:
        theirs = None
        if offsets is not None:
            theirs = {_theirs(at): OffsetAndMetadata(offset, metadata) for at, (offset, metadata) in offsets.items()}
        _await(self._consumer.commit(theirs))

    def committed(self, at: At) -> Committed | None:
        # The public call leaves the metadata out.
        found = _await(self._consumer._coordinator.fetch_committed_offsets([_theirs(at)])).get(_theirs(at))
        return None if found is None else Committed(found.offset, found.metadata)

    def close(self) -> None:
        _await(self._consumer.stop())


def _theirs(at: At) -> TopicPartition:
    return TopicPartition(at.topic, at.partition)


class Aiokafka(Client):
    name = "aiokafka"

    def producer(self, servers: str, options: ProducerOptions = DEFAULT_PRODUCER) -> Producer:
        return AiokafkaProducer(servers, options)

    def consumer(self, servers: str, options: ConsumerOptions = DEFAULT_CONSUMER) -> Consumer:
        return AiokafkaConsumer(servers, options)
