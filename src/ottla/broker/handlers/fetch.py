"""Fetch (1). Reads whole batches; a fetch that finds too little waits for appends, not by polling."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.replica_fetch import (
    NO_FOLLOWER,
    follower_in,
    preferred_elsewhere,
    readable_until,
    with_leader_hint,
    without_throttled,
)
from ottla.broker.requests.fetch_sessions import NO_SESSION, Plan
from ottla.broker.requests.turns import FEW, Turns
from ottla.broker.requests.waiting import ByteWait
from ottla.core.errors import ApiError, OffsetOutOfRange
from ottla.records.batch import read_header
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.replication.replica import Replica
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.fetch_sessions import Key
    from ottla.wire.messages.fetch import FetchPartition, FetchRequest

_BY_ID_SINCE: Final = 13
_READ_COMMITTED: Final = 1
_MAX_WAIT_MS: Final = 300_000
_READ_IN_A_ROW: Final = 16
_NO_DIVERGENCE: Final = EpochEndOffset()

Results = list[tuple["Key", PartitionData]]


def fetch(
    broker: Broker, request: FetchRequest, context: Context
) -> FetchResponse | Coroutine[object, object, FetchResponse]:
    is_by_id = context.version >= _BY_ID_SINCE
    try:
        plan = broker.fetch_sessions.plan(request, is_by_id=is_by_id)
    except ApiError as refused:
        return FetchResponse(error_code=refused.code, responses=())
    if len(plan.wanted) > FEW:
        return _fetch_many(broker, request, plan, is_by_id)
    results = _read_all(broker, request, plan.wanted, is_by_id)
    missing = _missing(request, results)
    if missing <= 0 or request.max_wait_ms <= 0 or not results:
        return _response(plan, results)
    until_s = _until_s(request)
    # Begun here and not in the task, which runs only later: what is appended in between must count.
    wait = _wait(broker, request, plan, is_by_id, missing, until_s)
    return _when_enough(broker, request, plan, is_by_id, wait, until_s)


async def _when_enough(  # noqa: PLR0913
    broker: Broker,
    request: FetchRequest,
    plan: Plan,
    is_by_id: bool,  # noqa: FBT001
    wait: ByteWait,
    until_s: float,
) -> FetchResponse:
    while True:
        try:
            await wait
        finally:
            wait.end()
        results = _read_all(broker, request, plan.wanted, is_by_id)
        missing = _missing(request, results)
        if missing <= 0 or wait.is_last:
            return _response(plan, results)
        # What was appended cannot all be read yet: it is not durable, say, or not committed.
        wait = _wait(broker, request, plan, is_by_id, missing, until_s)


async def _fetch_many(broker: Broker, request: FetchRequest, plan: Plan, is_by_id: bool) -> FetchResponse:  # noqa: FBT001
    """As `fetch`, for so many partitions that others have to be served in between."""
    until_s = _until_s(request)
    while True:
        wait = ByteWait((), request.min_bytes, until_s)
        try:
            results = await _read_in_turns(broker, request, plan, is_by_id, wait)
            missing = _missing(request, results)
            if missing <= 0 or wait.is_last or request.max_wait_ms <= 0:
                response = _response(plan, results)
                await asyncio.sleep(0)
                return response
            wait.got(request.min_bytes - missing)
            await wait
        finally:
            wait.end()


async def _read_in_turns(
    broker: Broker,
    request: FetchRequest,
    plan: Plan,
    is_by_id: bool,  # noqa: FBT001
    wait: ByteWait,
) -> Results:
    turns = Turns()
    results: Results = []
    taken = 0
    for start in range(0, len(plan.wanted), _READ_IN_A_ROW):
        some = plan.wanted[start : start + _READ_IN_A_ROW]
        # Before they are read: what is appended to them while others have their turn must count.
        if request.max_wait_ms > 0:
            _watch(broker, some, is_by_id, wait, follower_in(request))
        read = _read_all(broker, request, some, is_by_id, taken)
        taken += sum([len(data.records or b"") for _, data in read])
        results += read
        if turns.are_over():
            await asyncio.sleep(0)
    return results


def _watch(
    broker: Broker,
    some: Sequence[tuple[Key, FetchPartition]],
    is_by_id: bool,  # noqa: FBT001
    wait: ByteWait,
    follower: int,
) -> None:
    for key, _ in some:
        with suppress(ApiError):
            wait.watch(_awaited(_find(broker, key, is_by_id), follower))


def _until_s(request: FetchRequest) -> float:
    return asyncio.get_running_loop().time() + min(request.max_wait_ms, _MAX_WAIT_MS) / 1000


def _wait(  # noqa: PLR0913
    broker: Broker,
    request: FetchRequest,
    plan: Plan,
    is_by_id: bool,  # noqa: FBT001
    missing: int,
    until_s: float,
) -> ByteWait:
    follower = follower_in(request)
    partitions = [_find(broker, key, is_by_id) for key, _ in plan.wanted]
    if follower != NO_FOLLOWER:
        until_s = without_throttled(partitions, follower, until_s, asyncio.get_running_loop().time())
    return ByteWait((_awaited(partition, follower) for partition in partitions), missing, until_s)


def _awaited(partition: Partition, follower: int) -> Partition | Replica:
    """What a follower waits for is what is appended; what anybody else waits for is what is committed."""
    return partition if follower == NO_FOLLOWER or partition.replica is None else partition.replica


def _missing(request: FetchRequest, results: Results) -> int:
    """How many bytes to wait for; none if there is anything that the client should learn at once."""
    missing = request.min_bytes
    for _, data in results:
        if data.error_code or data.diverging_epoch.epoch >= 0 or data.preferred_read_replica >= 0:
            return 0
        missing -= len(data.records or b"")
    return missing


def _read_all(
    broker: Broker,
    request: FetchRequest,
    all_wanted: Sequence[tuple[Key, FetchPartition]],
    is_by_id: bool,  # noqa: FBT001
    taken: int = 0,
) -> Results:
    """`taken` bytes of the answer are read already."""
    left = min(request.max_bytes, broker.config.fetch_max_bytes, broker.listener.held.room) - taken
    results: Results = []
    is_first = taken == 0
    for key, wanted in all_wanted:
        try:
            partition = _find(broker, key, is_by_id)
            if partition.replica is None:
                data = _read(partition, wanted, request.isolation_level, left, is_first)
            else:
                data = _read_replica(partition, request, wanted, left, is_first)
        except ApiError as refused:
            data = _refusal(key.partition, refused)
        if data.records:
            left -= len(data.records)
            is_first = False
        results.append((key, data))
    return results


def _find(broker: Broker, key: Key, is_by_id: bool) -> Partition:  # noqa: FBT001
    if is_by_id:
        return broker.topics.partition_by_id(key.topic_id, key.partition)
    return broker.topics.partition(key.topic, key.partition)


def _read_replica(
    partition: Partition,
    request: FetchRequest,
    wanted: FetchPartition,
    left: int,
    is_first: bool,  # noqa: FBT001
) -> PartitionData:
    replica = partition.replica
    assert replica is not None  # noqa: S101 - for mypy: asked for by the caller
    try:
        until = readable_until(replica, request, wanted)
        if (follower := follower_in(request)) != NO_FOLLOWER:
            room = replica.throttling.room(replica, follower, left)
            data = _read(partition, wanted, request.isolation_level, room, is_first, until)
            replica.throttling.sent(replica, follower, len(data.records or b""))
            return data
        elsewhere = preferred_elsewhere(replica, request, wanted)
        return elsewhere or _read(partition, wanted, request.isolation_level, left, is_first, until)
    except ApiError as refused:
        return with_leader_hint(partition, _refusal(wanted.partition, refused))


def _read(  # noqa: PLR0913
    partition: Partition,
    wanted: FetchPartition,
    isolation_level: int,
    left: int,
    is_first: bool,  # noqa: FBT001
    until: int | None = None,
) -> PartitionData:
    partition.check_epoch(wanted.current_leader_epoch)
    log = partition.log
    until = partition.readable_until(isolation_level) if until is None else until
    offset = wanted.fetch_offset
    room = min(wanted.partition_max_bytes, left)
    divergence = _divergence(partition, wanted)
    records: memoryview | bytes
    if divergence is not _NO_DIVERGENCE:
        records = b""
    elif is_first:
        # Only the first batch of an answer may be larger than what was asked for.
        records = log.read(offset, max(room, 0), until)
    else:
        # Up to `offset` there is nothing to read, but whether that is a place in the log is checked all the same.
        records = log.read(offset, max(room, 0), until if room > 0 else offset)
        if len(records) > room:
            records = b""
    return PartitionData(
        partition_index=wanted.partition,
        error_code=0,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=log.start_offset,
        diverging_epoch=divergence,
        aborted_transactions=_aborted(partition, offset, records) if isolation_level == _READ_COMMITTED else None,
        records=records,
    )


def _divergence(partition: Partition, wanted: FetchPartition) -> EpochEndOffset:
    if wanted.last_fetched_epoch < 0:
        return _NO_DIVERGENCE
    log = partition.log
    epoch, end = partition.leader_epochs.end_of(wanted.last_fetched_epoch, log.next_offset)
    if epoch < 0 or wanted.fetch_offset < log.start_offset:
        raise OffsetOutOfRange(f"no offset {wanted.fetch_offset} after leader epoch {wanted.last_fetched_epoch}")
    if epoch == wanted.last_fetched_epoch and end >= wanted.fetch_offset:
        return _NO_DIVERGENCE
    return EpochEndOffset(epoch=epoch, end_offset=end)


def _aborted(partition: Partition, offset: int, records: memoryview | bytes) -> tuple[AbortedTransaction, ...]:
    """The aborted transactions that the reader of these records has to leave out."""
    if not records:
        return ()
    found = partition.log.aborted_transactions(offset, partition.log.next_offset)
    if not found:
        return ()
    end = _end_of(records)
    return tuple(
        AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
        for aborted in found
        if aborted.first_offset < end
    )


def _end_of(records: memoryview | bytes) -> int:
    at = 0
    while True:
        header = read_header(records, at)
        at += header.size
        if at >= len(records):
            return header.next_offset


def _refusal(index: int, refused: ApiError) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=refused.code,
        high_watermark=-1,
        aborted_transactions=(),
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
