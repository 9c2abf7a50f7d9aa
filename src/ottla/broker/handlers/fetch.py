"""Fetch (1). Reads whole batches; a fetch that finds too little waits for appends, not by polling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.fetch_sessions import NO_SESSION, Plan
from ottla.broker.waiting import wait_for_bytes
from ottla.core.errors import ApiError
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.fetch_sessions import Key
    from ottla.broker.partition import Partition
    from ottla.wire.messages.fetch import FetchPartition, FetchRequest

_BY_ID_SINCE: Final = 13
_SESSIONS_SINCE: Final = 7
_READ_COMMITTED: Final = 1
_MAX_WAIT_MS: Final = 300_000

Results = list[tuple["Key", PartitionData]]


def fetch(
    broker: Broker, request: FetchRequest, context: Context
) -> FetchResponse | Coroutine[object, object, FetchResponse]:
    try:
        plan = broker.fetch_sessions.plan(request, is_by_id=context.version >= _BY_ID_SINCE)
    except ApiError as refused:
        return FetchResponse(error_code=refused.code, responses=())
    results = _read_all(broker, request, plan)
    missing = request.min_bytes - sum(len(data.records or b"") for _, data in results)
    has_error = any(data.error_code != 0 for _, data in results)
    if missing <= 0 or has_error or request.max_wait_ms <= 0 or not results:
        return _response(plan, results)
    return _wait(broker, request, plan, missing)


async def _wait(broker: Broker, request: FetchRequest, plan: Plan, missing: int) -> FetchResponse:
    partitions = [_find(broker, key) for key, _ in plan.wanted]
    await wait_for_bytes(partitions, missing, min(request.max_wait_ms, _MAX_WAIT_MS) / 1000)
    return _response(plan, _read_all(broker, request, plan))


def _read_all(broker: Broker, request: FetchRequest, plan: Plan) -> Results:
    left = min(request.max_bytes, broker.config.fetch_max_bytes)
    results: Results = []
    is_first = True
    for key, wanted in plan.wanted:
        try:
            data = _read(broker, key, wanted, request.isolation_level, left if is_first or left > 0 else 0, is_first)
        except ApiError as refused:
            data = _refusal(key.partition, refused)
        if data.records:
            left -= len(data.records)
            is_first = False
        results.append((key, data))
    return results


def _find(broker: Broker, key: Key) -> Partition:
    if key.topic:
        return broker.topics.partition(key.topic, key.partition)
    return broker.topics.partition_by_id(key.topic_id, key.partition)


def _read(  # noqa: PLR0913
    broker: Broker,
    key: Key,
    wanted: FetchPartition,
    isolation_level: int,
    left: int,
    is_first: bool,  # noqa: FBT001
) -> PartitionData:
    partition = _find(broker, key)
    partition.check_epoch(wanted.current_leader_epoch)
    log = partition.log
    until = partition.readable_until(isolation_level)
    offset = wanted.fetch_offset
    room = min(wanted.partition_max_bytes, left)
    records: memoryview | bytes = log.read(offset, max(room, 0), until)
    # Only the first batch of an answer may be larger than what was asked for.
    if len(records) > room and not is_first:
        records = b""
    return PartitionData(
        partition_index=key.partition,
        error_code=0,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=log.start_offset,
        diverging_epoch=_divergence(partition, wanted),
        aborted_transactions=_aborted(partition, offset, until) if isolation_level == _READ_COMMITTED else None,
        records=records,
    )


def _divergence(partition: Partition, wanted: FetchPartition) -> EpochEndOffset:
    if wanted.last_fetched_epoch < 0:
        return EpochEndOffset()
    epoch, end = partition.log.epochs.end_of(wanted.last_fetched_epoch, partition.log.next_offset)
    if epoch == wanted.last_fetched_epoch and end >= wanted.fetch_offset:
        return EpochEndOffset()
    return EpochEndOffset(epoch=epoch, end_offset=end)


def _aborted(partition: Partition, offset: int, until: int) -> tuple[AbortedTransaction, ...]:
    return tuple(
        AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
        for aborted in partition.log.aborted_transactions(offset, until)
    )


def _refusal(index: int, refused: ApiError) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=refused.code,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


def _response(plan: Plan, results: Results) -> FetchResponse:
    session = plan.session
    if session is not None:
        if plan.is_incremental:
            results = [(key, data) for key, data in results if session.is_news(key, data)]
        for key, data in results:
            session.told(key, data)
    topics: dict[tuple[str, bytes], list[PartitionData]] = {}
    for key, data in results:
        topics.setdefault((key.topic, key.topic_id), []).append(data)
    return FetchResponse(
        session_id=session.id if session is not None else NO_SESSION,
        responses=tuple(
            FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=tuple(partitions))
            for (topic, topic_id), partitions in topics.items()
        ),
    )
