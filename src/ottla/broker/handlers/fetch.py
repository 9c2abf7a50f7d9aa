"""Fetch (1). Reads whole batches; a fetch with too little data waits for appends, without polling."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from ottla.broker.requests.fetch_sessions import NO_SESSION, Plan
from ottla.broker.requests.turns import FEW, Turns
from ottla.broker.requests.waiting import ByteWait
from ottla.broker.roles import NO_NODE
from ottla.core.errors import ApiError, ErrorCode
from ottla.core.file_range import FileRange
from ottla.records.batch import read_header
from ottla.storage.file_ranges import find_range
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.fetch_sessions import Key
    from ottla.wire.declare import AnyBytes, Sendable
    from ottla.wire.messages.fetch import FetchPartition, FetchRequest

_BY_ID_SINCE: Final = 13
_READ_COMMITTED: Final = 1
_MAX_WAIT_MS: Final = 300_000
_READ_IN_A_ROW: Final = 16
_NO_DIVERGENCE: Final = EpochEndOffset()
_NOTHING_READ: Final = b""
_WITH_LEADER: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

Wanted = Sequence[tuple["Key", "FetchPartition"]]
Results = list[tuple["Key", PartitionData]]


class _Asked(NamedTuple):
    """A request, and what its version and its connection allow."""

    request: FetchRequest
    is_by_id: bool
    sends_files: bool


def fetch(
    broker: Broker, request: FetchRequest, context: Context
) -> FetchResponse | Coroutine[object, object, FetchResponse]:
    is_by_id = context.version >= _BY_ID_SINCE
    asked = _Asked(request, is_by_id, context.connection.sends_files)
    try:
        plan = broker.fetch_sessions.plan(request, is_by_id=is_by_id)
    except ApiError as refused:
        return FetchResponse(error_code=refused.code, responses=())
    if len(plan.wanted) > FEW:
        return _fetch_many(broker, asked._replace(sends_files=False), plan)
    results = _read_all(broker, asked, plan.wanted)
    missing = _missing(request, results)
    if missing <= 0 or request.max_wait_ms <= 0 or not results:
        return _response(plan, results)
    until_s = _until_s(request)
    # Started here and not in the task, which runs later, so that appends in between are counted.
    wait = _wait(broker, asked, plan, missing, until_s)
    return _when_enough(broker, asked, plan, wait, until_s)


async def _when_enough(broker: Broker, asked: _Asked, plan: Plan, wait: ByteWait, until_s: float) -> FetchResponse:
    while True:
        try:
            await wait
        finally:
            wait.end()
        results = _read_all(broker, asked, plan.wanted)
        missing = _missing(asked.request, results)
        if missing <= 0 or wait.is_last:
            return _response(plan, results)
        # Not everything appended is readable yet: it may not be durable, or not committed.
        wait = _wait(broker, asked, plan, missing, until_s)


async def _fetch_many(broker: Broker, asked: _Asked, plan: Plan) -> FetchResponse:
    """Like `fetch`, in time slices, for many partitions."""
    request = asked.request
    until_s = _until_s(request)
    while True:
        wait = ByteWait((), request.min_bytes, until_s)
        try:
            results = await _read_in_turns(broker, asked, plan, wait)
            missing = _missing(request, results)
            if missing <= 0 or wait.is_last or request.max_wait_ms <= 0:
                response = _response(plan, results)
                await asyncio.sleep(0)
                return response
            wait.got(request.min_bytes - missing)
            await wait
        finally:
            wait.end()


async def _read_in_turns(broker: Broker, asked: _Asked, plan: Plan, wait: ByteWait) -> Results:
    turns = Turns()
    results: Results = []
    taken = 0
    for start in range(0, len(plan.wanted), _READ_IN_A_ROW):
        some = plan.wanted[start : start + _READ_IN_A_ROW]
        # Started before the partitions are read, so that appends during other slices are counted.
        if asked.request.max_wait_ms > 0:
            _watch(broker, some, asked, wait)
        read = _read_all(broker, asked, some, taken)
        taken += sum([len(data.records or b"") for _, data in read])
        results += read
        if turns.are_over():
            await asyncio.sleep(0)
    return results


def _watch(broker: Broker, some: Wanted, asked: _Asked, wait: ByteWait) -> None:
    follower = _follower_in(asked.request)
    for key, _ in some:
        with suppress(ApiError):
            wait.watch(_find(broker, key, asked.is_by_id).wait_for(follower))


def _until_s(request: FetchRequest) -> float:
    return asyncio.get_running_loop().time() + min(request.max_wait_ms, _MAX_WAIT_MS) / 1000


def _wait(broker: Broker, asked: _Asked, plan: Plan, missing: int, until_s: float) -> ByteWait:
    follower = _follower_in(asked.request)
    partitions = [_find(broker, key, asked.is_by_id) for key, _ in plan.wanted]
    if follower != NO_NODE:
        # Wait at most until the replication quota allows one of them.
        now_s = asyncio.get_running_loop().time()
        waits_s = [partition.role.wait_to_send_s(follower) for partition in partitions]
        until_s = min([until_s, *(now_s + wait_s for wait_s in waits_s if wait_s > 0)])
    return ByteWait((partition.wait_for(follower) for partition in partitions), missing, until_s)


def _follower_in(request: FetchRequest) -> int:
    """The id of the fetching broker; for a consumer the same constant for any negative replica id."""
    return max(request.replica_id, request.replica_state.replica_id, NO_NODE)


def _missing(request: FetchRequest, results: Results) -> int:
    """The bytes to wait for; none if the client must get something at once."""
    missing = request.min_bytes
    for _, data in results:
        if data.error_code or data.diverging_epoch.epoch >= 0 or data.preferred_read_replica >= 0:
            return 0
        missing -= len(data.records or b"")
    return missing


def _read_all(broker: Broker, asked: _Asked, all_wanted: Wanted, taken: int = 0) -> Results:
    """Read all partitions; `taken` bytes of the response are already used."""
    request = asked.request
    left = min(request.max_bytes, broker.config.fetch_max_bytes, broker.listener.held.room) - taken
    results: Results = []
    is_first = taken == 0
    read = _read_for_consumer if _follower_in(request) == NO_NODE else _read_for_follower
    for key, wanted in all_wanted:
        partition = None
        try:
            partition = _find(broker, key, asked.is_by_id)
            data = read(partition, asked, wanted, left, is_first)
        except ApiError as refused:
            data = _refusal(key.partition, refused, partition)
        if data.records:
            left -= len(data.records)
            is_first = False
        results.append((key, data))
    return results


def _find(broker: Broker, key: Key, is_by_id: bool) -> Partition:  # noqa: FBT001
    if is_by_id:
        return broker.topics.partition_by_id(key.topic_id, key.partition)
    return broker.topics.partition(key.topic, key.partition)


def _read_for_consumer(
    partition: Partition,
    asked: _Asked,
    wanted: FetchPartition,
    left: int,
    is_first: bool,  # noqa: FBT001
) -> PartitionData:
    request = asked.request
    offset, isolation_level, rack_id = wanted.fetch_offset, request.isolation_level, request.rack_id
    partition.check_consumer(wanted.current_leader_epoch, offset, rack_id)
    if rack_id and (node := partition.role.preferred_read_replica(rack_id, offset)) is not None:
        return _fetched(partition, wanted, isolation_level, _NOTHING_READ, preferred_read_replica=node)
    divergence = partition.divergence(offset, wanted.last_fetched_epoch)
    if divergence is not None:
        return _diverging(partition, wanted, isolation_level, divergence)
    room, until = min(wanted.partition_max_bytes, left), partition.readable_until(isolation_level)
    records = _records(partition, asked, wanted, (room, until), is_first)
    return _fetched(partition, wanted, isolation_level, records)


def _read_for_follower(
    partition: Partition,
    asked: _Asked,
    wanted: FetchPartition,
    left: int,
    is_first: bool,  # noqa: FBT001
) -> PartitionData:
    request = asked.request
    role, follower, offset = partition.role, _follower_in(request), wanted.fetch_offset
    partition.check_epoch(wanted.current_leader_epoch)
    role.check_follower(follower, offset, request.replica_state.replica_epoch)
    divergence = partition.divergence(offset, wanted.last_fetched_epoch)
    if divergence is not None:
        return _diverging(partition, wanted, request.isolation_level, divergence)
    role.record_fetch(follower, offset, wanted.log_start_offset, request.replica_state.replica_epoch)
    is_held = role.wait_to_send_s(follower) > 0
    until = offset if is_held else role.end_for_followers(request.isolation_level)
    room = min(wanted.partition_max_bytes, role.sendable(follower, left))
    records = _records(partition, asked, wanted, (room, until), is_first)
    role.sent(follower, len(records))
    removed_until = partition.log.removed_tombstones.until
    return _fetched(partition, wanted, request.isolation_level, records, tombstones_removed_until=removed_until)


def _records(
    partition: Partition,
    asked: _Asked,
    wanted: FetchPartition,
    limits: tuple[int, int],
    is_first: bool,  # noqa: FBT001
) -> Sendable:
    """Whole batches within these limits: bytes, and an offset."""
    room, until = limits
    if asked.sends_files:
        found = find_range(partition.log, wanted.fetch_offset, room, until)
        if found is not None and (is_first or len(found.batches) <= room):
            return found.take()
    return partition.read(wanted.fetch_offset, room, until, is_first=is_first)


def _diverging(
    partition: Partition, wanted: FetchPartition, isolation_level: int, divergence: tuple[int, int]
) -> PartitionData:
    epoch, end_offset = divergence
    diverging = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return _fetched(partition, wanted, isolation_level, _NOTHING_READ, diverging_epoch=diverging)


def _fetched(  # noqa: PLR0913
    partition: Partition,
    wanted: FetchPartition,
    isolation_level: int,
    records: Sendable,
    *,
    diverging_epoch: EpochEndOffset = _NO_DIVERGENCE,
    preferred_read_replica: int = NO_NODE,
    tombstones_removed_until: int = 0,
) -> PartitionData:
    is_committed = isolation_level == _READ_COMMITTED and preferred_read_replica == NO_NODE
    log, high_watermark = partition.log, partition.high_watermark
    return PartitionData(
        partition_index=wanted.partition,
        error_code=0,
        high_watermark=high_watermark,
        last_stable_offset=min(high_watermark, log.last_stable_offset),
        log_start_offset=log.start_offset,
        diverging_epoch=diverging_epoch,
        tombstones_removed_until=tombstones_removed_until,
        aborted_transactions=_aborted(partition, wanted.fetch_offset, records) if is_committed else None,
        preferred_read_replica=preferred_read_replica,
        records=cast("AnyBytes", records),
    )


def _aborted(partition: Partition, offset: int, records: Sendable) -> tuple[AbortedTransaction, ...]:
    """The aborted transactions that a reader of these records must skip."""
    if not records:
        return ()
    found = partition.log.aborted_transactions(offset, partition.log.next_offset)
    if not found:
        return ()
    end = _end_of(bytes(records) if isinstance(records, FileRange) else records)
    return tuple(
        AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
        for aborted in found
        if aborted.first_offset < end
    )


def _end_of(records: AnyBytes) -> int:
    at = 0
    while True:
        header = read_header(records, at)
        at += header.size
        if at >= len(records):
            return header.next_offset


def _refusal(index: int, refused: ApiError, partition: Partition | None) -> PartitionData:
    leader = NO_NODE, NO_NODE
    if partition is not None and refused.code in _WITH_LEADER:
        leader = partition.leader  # the current leader (KIP-951)
    return PartitionData(
        partition_index=index,
        error_code=refused.code,
        high_watermark=-1,
        current_leader=LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1]),
        aborted_transactions=(),
        records=b"",
    )


def _response(plan: Plan, results: Results) -> FetchResponse:
    session = plan.session
    if session is not None:
        if plan.is_incremental:
            results = [(key, data) for key, data in results if session.is_news(key, data)]
        for key, data in results:
            session.record_sent(key, data)
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
