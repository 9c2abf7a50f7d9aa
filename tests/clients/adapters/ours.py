"""Ottla's own client, in an event loop in a separate thread, so that it is called like the others."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.client.client import Client as OttlaClient
from ottla.client.errors import BrokerError, ClientError
from ottla.client.group.interface import Committed as OttlaCommitted
from ottla.core.errors import ErrorCode

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

    from ottla.core.ids import TopicPartition

    from .base import Headers

T = TypeVar("T")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="ottla-client", daemon=True).start()
    return loop


def _await(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run_coroutine_threadsafe(work, _loop()).result(PATIENCE_S)
    except ClientError as error:
        raise _refused(error) from error


def _refused(error: BaseException) -> Refused:
    cause = error if isinstance(error, BrokerError) else error.__cause__
    code = cause.code if isinstance(cause, BrokerError) else ErrorCode.UNKNOWN_SERVER_ERROR
    return Refused(code, repr(error))


class OttlaProducer(Producer):
    def __init__(self, servers: str, options: ProducerOptions) -> None:
        self._client = OttlaClient(servers)
        _await(self._client.start())
        self._producer = _await(self._make(options))
        self._followed: set[asyncio.Future[None]] = set()

    async def _make(self, options: ProducerOptions) -> Any:
        producer = self._client.producer(
            acks="all" if options.is_idempotent or options.acks == -1 else options.acks,  # type: ignore[arg-type]
            idempotence=options.is_idempotent,
            compression=options.compression or "none",  # type: ignore[arg-type]
            producer_max_bytes=options.max_request_bytes,
            producer_batch_timeout_ms=options.linger_ms,
        )
        return await producer.__aenter__()

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

        async def hand_over() -> None:
            try:
                delivery = await self._producer.send(
                    topic, value=value, key=key, partition=partition, timestamp_ms=timestamp, headers=headers
                )
            except ClientError as error:
                placed.set_exception(_refused(error))
                return
            following = asyncio.ensure_future(self._follow(delivery, placed))
            self._followed.add(following)
            following.add_done_callback(self._followed.discard)

        _await(hand_over())
        return placed

    async def _follow(self, delivery: Any, placed: Future[Placed]) -> None:
        try:
            found = await delivery
        except ClientError as error:
            placed.set_exception(_refused(error))
        else:
            placed.set_result(Placed(found.partition, found.offset))

    def flush(self) -> None:
        with contextlib.suppress(Refused):  # reported by the futures
            _await(self._producer.flush())

    def close(self) -> None:
        _await(self._client.close())


class OttlaConsumer(Consumer):
    def __init__(self, servers: str, options: ConsumerOptions) -> None:
        self._client = OttlaClient(servers, metadata_max_age_ms=options.metadata_max_age_ms)
        _await(self._client.start())
        self._consumer = _await(self._make(options))

    async def _make(self, options: ConsumerOptions) -> Any:
        assignors: Any = ("cooperative-sticky",) if options.is_cooperative else ("range", "roundrobin")
        consumer = self._client.consumer(
            group=options.group,
            group_instance_id=options.instance,
            isolation_level="read_committed" if options.is_committed_only else "read_uncommitted",
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=100,
            auto_offset_reset="earliest",
            auto_commit=options.commits_by_itself,
            auto_commit_interval_ms=100,
            assignors=assignors,
        )
        return await consumer.__aenter__()

    def subscribe(self, *topics: str) -> None:
        _await(self._consumer.subscribe(*topics))

    def assign(self, *partitions: TopicPartition) -> None:
        _await(self._consumer.assign(partitions))

    def assignment(self) -> set[TopicPartition]:
        return set(self._consumer.assignment)

    def poll(self, timeout_s: float = 0.1, most: int = 500) -> list[Received]:
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
            for record in _await(self._consumer.poll(most, timeout_ms=timeout_s * 1000))
        ]

    def seek(self, at: TopicPartition, offset: int) -> None:
        async def seek() -> None:
            self._consumer.seek(at, offset)

        _await(seek())

    def position(self, at: TopicPartition) -> int:
        found: int = _await(self._consumer.position(at))
        return found

    def pause(self, at: TopicPartition) -> None:
        _loop().call_soon_threadsafe(self._consumer.pause, at)

    def resume(self, at: TopicPartition) -> None:
        _loop().call_soon_threadsafe(self._consumer.resume, at)

    def begin_and_end(self, at: TopicPartition) -> tuple[int, int]:
        begin = _await(self._consumer.beginning_offsets(at))
        end = _await(self._consumer.end_offsets(at))
        return begin[at], end[at]

    def offset_for_time(self, at: TopicPartition, timestamp: int) -> int | None:
        found: dict[TopicPartition, int | None] = _await(self._consumer.offsets_for_times({at: timestamp}))
        return found[at]

    def commit(self, offsets: Mapping[TopicPartition, Committed] | None = None) -> None:
        ours = None
        if offsets is not None:
            ours = {at: OttlaCommitted(offset, metadata=metadata) for at, (offset, metadata) in offsets.items()}
        _await(self._consumer.commit(ours))

    def committed(self, at: TopicPartition) -> Committed | None:
        found = _await(self._consumer.committed(at)).get(at)
        return None if found is None else Committed(found.offset, found.metadata)

    def close(self) -> None:
        _await(self._client.close())


class Ottla(Client):
    name = "ottla"

    def producer(self, servers: str, options: ProducerOptions = DEFAULT_PRODUCER) -> Producer:
        return OttlaProducer(servers, options)

    def consumer(self, servers: str, options: ConsumerOptions = DEFAULT_CONSUMER) -> Consumer:
        return OttlaConsumer(servers, options)
