"""ShareFetch (78) and ShareAcknowledge (79).

An empty fetch waits: for an append, for released records, for a delay to end. A fetch with
less than `min_bytes` acquires nothing meanwhile: other consumers may.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.batches.delays import delays_in
from ottla.broker.requests.waiting import ByteWait
from ottla.broker.share.acquiring import AcquireLimits, FetchProgress, acquire, available_bytes
from ottla.core.errors import ApiError, ErrorCode
from ottla.core.security import AclOperation, ResourceType
from ottla.records.compression import DecompressedTooLarge
from ottla.share.sessions import CLOSING, OPENING, TopicIdPartition, session_key
from ottla.wire.messages import share_acknowledge as acknowledge
from ottla.wire.messages import share_fetch as fetch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.broker.share.acquiring import Acquisition
    from ottla.broker.share.shared import Shared
    from ottla.share.sessions import Session

_MAX_WAIT_MS: Final = 300_000
_STRICT: Final = 1


class _Outcome(NamedTuple):
    """The error of an acknowledgement or of a fetch."""

    code: ErrorCode = ErrorCode.NONE
    message: str | None = None


async def share_fetch(broker: Broker, request: fetch.ShareFetchRequest, context: Context) -> fetch.ShareFetchResponse:
    share = broker.share
    try:
        key = session_key(request.group_id, request.member_id)
        share.check(key.group_id)
        session = share.sessions.fetching(key, request.share_session_epoch, context.connection)
        asked = {
            TopicIdPartition(topic.topic_id, part.partition_index): part
            for topic in request.topics
            for part in topic.partitions
        }
        acknowledged = await _acknowledge(
            broker, session, {at: part.acknowledgement_batches for at, part in asked.items()}
        )
        if request.share_session_epoch == CLOSING:
            share.close_session(session, was_delivered=False)
            return _fetched(broker, key.group_id, acknowledged, {}, {})
    except ApiError as refused:
        return fetch.ShareFetchResponse(
            error_code=refused.code,
            error_message=str(refused),
            acquisition_lock_timeout=0,
            responses=(),
            node_endpoints=(),
        )
    session.update(
        asked,
        (TopicIdPartition(each.topic_id, index) for each in request.forgotten_topics_data for index in each.partitions),
    )
    taken, failed = await _take(broker, session, request, context)
    if request.share_session_epoch == OPENING:
        failed = {**dict.fromkeys(asked, _Outcome()), **failed}
    return _fetched(broker, key.group_id, acknowledged, taken, failed)


async def _take(
    broker: Broker, session: Session, request: fetch.ShareFetchRequest, context: Context
) -> tuple[dict[TopicIdPartition, Acquisition], dict[TopicIdPartition, _Outcome]]:
    """Records of these partitions; waits until there are some."""
    share, group_id = broker.share, session.key.group_id
    until_s = asyncio.get_running_loop().time() + min(request.max_wait_ms, _MAX_WAIT_MS) / 1000
    least = max(request.min_bytes, 1)
    may_wait = request.max_wait_ms > 0 and request.max_records > 0 and request.max_bytes > 0
    progress = FetchProgress()
    while True:
        shared, failed = _find(broker, session, context, await share.ready(group_id, session.partitions))
        # Started before they are read: events from now on must count.
        wait = ByteWait([each for one in shared.values() for each in (one.waits, one.partition.waits)], least, until_s)
        try:
            available = _available(broker, group_id, shared, least)
            if failed or available >= least or not may_wait:
                taken, is_unfinished = _take_now(broker, session, request, shared, failed, progress)
                if is_unfinished:
                    await _look_into_large(broker, progress)
                    continue
                if taken or failed or not may_wait:
                    return taken, failed
                available = least - 1  # none of the current records is available, but the next one may be
            wait.got(available)
            await wait
        finally:
            wait.end()
        if wait.is_last:
            shared, failed = _find(broker, session, context, await share.ready(group_id, session.partitions))
            return _take_now(broker, session, request, shared, failed, progress)[0], failed


async def _look_into_large(broker: Broker, progress: FetchProgress) -> None:
    """Find delayed records in batches that take long to decompress, while other requests are served."""
    inflating = broker.inflating
    allowance = inflating.allowance()
    for key, (batch, header) in progress.large.items():
        look = partial(delays_in, batch, header, broker.share.now_ms())
        try:
            progress.known[key] = (await inflating.in_thread(look, inflating.limit(len(batch)), allowance)).delays
        except DecompressedTooLarge:
            # Readers decompress or reject it: none of its records is delayed.
            progress.known[key] = ()
    progress.large.clear()
    progress.inflated_bytes = 0
    await asyncio.sleep(0)


def _available(broker: Broker, group_id: str, shared: Mapping[TopicIdPartition, Shared], least: int) -> int:
    """The number of available bytes. Not counted for a minimum of one byte: `_take_now` finds out."""
    if least == 1:
        return 1
    settings = broker.share.settings(group_id)
    try:
        return sum(available_bytes(one, settings) for one in shared.values())
    except ApiError:
        return least  # the client must get it at once


def _find(
    broker: Broker, session: Session, context: Context, unready: Mapping[TopicIdPartition, ApiError]
) -> tuple[dict[TopicIdPartition, Shared], dict[TopicIdPartition, _Outcome]]:
    """The partitions of the session that may still be read: ACLs may have changed."""
    authorizer = broker.security.authorizer
    found: dict[TopicIdPartition, Shared] = {}
    failed: dict[TopicIdPartition, _Outcome] = {}
    for at in session.partitions:
        try:
            if at in unready:
                raise unready[at]
            one = broker.share.shared(session.key.group_id, at)
            topic = one.partition.at.topic
            if authorizer is None or authorizer.is_allowed(context, AclOperation.READ, ResourceType.TOPIC, topic):
                found[at] = one
            else:
                failed[at] = _Outcome(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        except ApiError as refused:
            failed[at] = _Outcome(refused.code, str(refused))
    return found, failed


def _take_now(  # noqa: PLR0913
    broker: Broker,
    session: Session,
    request: fetch.ShareFetchRequest,
    shared: Mapping[TopicIdPartition, Shared],
    failed: dict[TopicIdPartition, _Outcome],
    progress: FetchProgress,
) -> tuple[dict[TopicIdPartition, Acquisition], bool]:
    """The available records, and whether some partition must be inspected further first."""
    share = broker.share
    settings = share.settings(session.key.group_id)
    room = min(request.max_bytes, broker.config.fetch_max_bytes, broker.listener.held.room)
    records = request.max_records
    taken: dict[TopicIdPartition, Acquisition] = {}
    is_unfinished = False
    for at, one in shared.items():
        if records <= 0 or room <= 0:
            break
        asked = AcquireLimits(
            session.key.member_id, records, room, is_strict=request.share_acquire_mode == _STRICT, may_exceed=not taken
        )
        try:
            got = acquire(one, asked, settings, share.now_ms(), progress)
        except ApiError as refused:
            failed[at] = _Outcome(refused.code, str(refused))
            continue
        share.partitions.arm(one)
        is_unfinished |= got.is_unfinished
        if got.pieces:
            taken[at] = got
            records -= got.count
            room -= got.size
    for at in taken:
        session.served(at)
    return taken, is_unfinished and not taken


def _fetched(
    broker: Broker,
    group_id: str,
    acknowledged: Mapping[TopicIdPartition, _Outcome],
    taken: Mapping[TopicIdPartition, Acquisition],
    failed: Mapping[TopicIdPartition, _Outcome],
) -> fetch.ShareFetchResponse:
    topics: dict[bytes, list[fetch.PartitionData]] = {}
    for at in {**acknowledged, **failed, **taken}:
        outcome, settled, got = failed.get(at, _Outcome()), acknowledged.get(at, _Outcome()), taken.get(at)
        leader, epoch = _leader(broker, at)
        data = fetch.PartitionData(
            partition_index=at.partition,
            error_code=outcome.code,
            error_message=outcome.message,
            acknowledge_error_code=settled.code,
            acknowledge_error_message=settled.message,
            current_leader=fetch.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
            records=b"" if got is None else got.records,
            acquired_records=()
            if got is None
            else tuple(
                fetch.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                for first, last, count in got.acquired
            ),
        )
        topics.setdefault(at.topic_id, []).append(data)
    return fetch.ShareFetchResponse(
        error_code=ErrorCode.NONE,
        acquisition_lock_timeout=broker.share.settings(group_id).limits.lock_ms,
        responses=tuple(
            fetch.ShareFetchableTopicResponse(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in topics.items()
        ),
        node_endpoints=(),
    )


def _leader(broker: Broker, at: TopicIdPartition) -> tuple[int, int]:
    """The leader of a partition, and its epoch."""
    state = broker.topics.by_id.get(at.topic_id)
    if broker.cluster is None or state is None or not 0 <= at.partition < len(state.partitions):
        return broker.config.node_id, 0
    return state.partitions[at.partition].leader


# Acknowledging


async def share_acknowledge(
    broker: Broker, request: acknowledge.ShareAcknowledgeRequest, _context: Context
) -> acknowledge.ShareAcknowledgeResponse:
    share = broker.share
    asked = {
        TopicIdPartition(topic.topic_id, part.partition_index): part.acknowledgement_batches
        for topic in request.topics
        for part in topic.partitions
    }
    try:
        key = session_key(request.group_id, request.member_id)
        share.check(key.group_id)
        session = share.sessions.acknowledging(key, request.share_session_epoch)
        outcomes = await _acknowledge(broker, session, asked)
        if request.share_session_epoch == CLOSING:
            share.close_session(session, was_delivered=False)
    except ApiError as refused:
        return acknowledge.ShareAcknowledgeResponse(
            error_code=refused.code, error_message=str(refused), responses=(), node_endpoints=()
        )
    topics: dict[bytes, list[acknowledge.PartitionData]] = {}
    for at in asked:
        outcome = outcomes.get(at, _Outcome())
        leader, epoch = _leader(broker, at)
        data = acknowledge.PartitionData(
            partition_index=at.partition,
            error_code=outcome.code,
            error_message=outcome.message,
            current_leader=acknowledge.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
        )
        topics.setdefault(at.topic_id, []).append(data)
    return acknowledge.ShareAcknowledgeResponse(
        error_code=ErrorCode.NONE,
        acquisition_lock_timeout=share.settings(key.group_id).limits.lock_ms,
        responses=tuple(
            acknowledge.ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in topics.items()
        ),
        node_endpoints=(),
    )


async def _acknowledge(
    broker: Broker,
    session: Session,
    asked: Mapping[TopicIdPartition, tuple[fetch.AcknowledgementBatch | acknowledge.AcknowledgementBatch, ...]],
) -> dict[TopicIdPartition, _Outcome]:
    """The results, for each acknowledged partition."""
    partitions = broker.share.partitions
    outcomes: dict[TopicIdPartition, _Outcome] = {}
    begun = []
    unready = await broker.share.ready(session.key.group_id, (at for at, batches in asked.items() if batches))
    for at, batches in asked.items():
        if not batches:
            continue
        outcomes[at] = _Outcome()
        try:
            if at in unready:
                raise unready[at]
            shared = broker.share.shared(session.key.group_id, at)
            begun.append((at, shared, partitions.acknowledge(shared, session.key.member_id, batches)))
        except ApiError as refused:
            outcomes[at] = _Outcome(refused.code, str(refused))
    for at, shared, place in begun:
        try:
            await partitions.settled(shared, place)
        except ApiError as refused:
            outcomes[at] = _Outcome(refused.code, str(refused))
    return outcomes
