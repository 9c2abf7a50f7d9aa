"""Requests to a partition's leader, retried while it moves or restarts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.client.connections import Purpose
from ottla.client.errors import BrokerUnavailable, ClientError, broker_error
from ottla.client.producer.transaction_requests import NAMED_FIRST
from ottla.client.view import NO_LEADER
from ottla.core.errors import ErrorCode
from ottla.wire.declare import Response
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ottla.client.router import Router
    from ottla.core.ids import TopicPartition
    from ottla.wire.codec import RequestFor

ResponseT = TypeVar("ResponseT", bound=Response)

_LAST_VERSION: Final = NAMED_FIRST.produce
"""The highest version of Produce and Fetch used: with topic names, and AddPartitionsToTxn in transactions."""
_FETCH_BYTES: Final = 4 << 20
_REPLICAS_TIMEOUT_MS: Final = 30_000


async def produce(
    router: Router, at: TopicPartition, batch: bytearray, timeout_s: float, transactional_id: str | None = None
) -> int:
    """Append a batch with a sequence number, and return its base offset. A retried batch is stored once."""
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=_REPLICAS_TIMEOUT_MS,
        topic_data=(
            TopicProduceData(name=at.topic, partition_data=(PartitionProduceData(index=at.partition, records=batch),)),
        ),
    )
    response = await _ask(
        router, at, request, Purpose.PUSH, timeout_s, lambda it: it.responses[0].partition_responses[0].error_code
    )
    return response.responses[0].partition_responses[0].base_offset


async def fetch(router: Router, at: TopicPartition, start: int, end: int) -> AsyncIterator[memoryview]:
    """The raw batches of a partition, from an offset to the log end or to below another offset."""
    from ottla.records.batches import find_batches

    unlimited = (1 << 63) - 1
    while start < end:
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            topics=(
                FetchTopic(
                    topic=at.topic,
                    partitions=(
                        FetchPartition(partition=at.partition, fetch_offset=start, partition_max_bytes=_FETCH_BYTES),
                    ),
                ),
            ),
        )
        timeout_s = router.config.request_timeout_ms / 1000
        response = await _ask(
            router, at, request, Purpose.FETCH, timeout_s, lambda it: it.responses[0].partitions[0].error_code
        )
        records = memoryview(response.responses[0].partitions[0].records or b"")
        first, last, next_offset = find_batches(records, start, end, unlimited)
        if last <= first:
            return
        yield records[first:last]
        start = next_offset


async def _ask(  # noqa: PLR0913
    router: Router,
    at: TopicPartition,
    request: RequestFor[ResponseT],
    purpose: Purpose,
    timeout_s: float,
    code_of: Callable[[ResponseT], int],
) -> ResponseT:
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + timeout_s
    failures = 0
    while True:
        failed: ClientError
        try:
            leader = router.leader(at.topic, at.partition)
            if leader == NO_LEADER:
                raise broker_error(ErrorCode.LEADER_NOT_AVAILABLE, str(at))
            connection = await router.connection(leader, purpose)
            version = connection.version_of(request.API, max_version=_LAST_VERSION)
            response = await connection.ask(request, version=version)
            if not (code := code_of(response)):
                return response
            failed = broker_error(code, str(at))
        except ClientError as error:
            failed = error
        if not failed.is_retriable or loop.time() >= give_up_at:
            raise failed
        failures += 1
        await asyncio.sleep(router.backoff.delay_s(failures))
        try:
            await router.refresh([at.topic])
        except BrokerUnavailable:
            continue
