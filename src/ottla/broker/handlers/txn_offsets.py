"""TxnOffsetCommit (28): offsets of a group that take effect when a transaction commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ottla.broker.coordinators.transaction_membership import InTransaction, MembershipApi
from ottla.core.errors import ApiError, ErrorCode
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context

_COMMIT: Final = MembershipApi(joins_since=5, abortable_since=4, try_later=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


async def txn_offset_commit(
    broker: Broker, request: TxnOffsetCommitRequest, context: Context
) -> TxnOffsetCommitResponse:
    if not request.group_id:
        return TxnOffsetCommitResponse(topics=_refused(request.topics, ErrorCode.INVALID_GROUP_ID))
    if error := broker.groups.error_for(request.group_id):
        return TxnOffsetCommitResponse(topics=_refused(request.topics, error))
    known, unknown = _sorted_out(broker, request)
    error = await _join(broker, request, context.version)
    if error is not ErrorCode.NONE:
        return TxnOffsetCommitResponse(topics=_refused(request.topics, error))
    topic_ids = {topic.name: broker.topics.by_name[topic.name].raw_id for topic in known}
    groups = broker.groups
    response, actions = groups.rules.offsets.commit_in_transaction(
        msgspec.structs.replace(request, topics=known), topic_ids, groups.now_ms()
    )
    error = await groups.persist(actions)
    if error is not ErrorCode.NONE:
        return TxnOffsetCommitResponse(topics=_refused(request.topics, error))
    return TxnOffsetCommitResponse(topics=(*response.topics, *unknown))


async def _join(broker: Broker, request: TxnOffsetCommitRequest, version: int) -> ErrorCode:
    """Whether the offsets may be written as part of the transaction now."""
    partition = broker.groups.partition_of(request.group_id)
    producer = request.producer_id, request.producer_epoch
    transaction = InTransaction(broker, request.transactional_id, is_joining=version >= _COMMIT.joins_since)
    await transaction.ask({producer: (partition,)})
    # After a wait, during which the transaction may have ended, or the group moved.
    error = broker.groups.error_for(request.group_id)
    if error is not ErrorCode.NONE:
        return error
    return _COMMIT.error_for(transaction.error_for(partition, producer), version)


def _sorted_out(
    broker: Broker, request: TxnOffsetCommitRequest
) -> tuple[tuple[TxnOffsetCommitRequestTopic, ...], tuple[TxnOffsetCommitResponseTopic, ...]]:
    """The offsets of existing partitions, and the response for the others."""
    known, unknown = [], []
    for topic in request.topics:
        parts, errors = [], []
        for part in topic.partitions:
            try:
                broker.topics.partition(topic.name, part.partition_index)
                parts.append(part)
            except ApiError as refused:
                errors.append(
                    TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=refused.code)
                )
        if parts:
            known.append(TxnOffsetCommitRequestTopic(name=topic.name, partitions=tuple(parts)))
        if errors:
            unknown.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=tuple(errors)))
    return tuple(known), tuple(unknown)


def _refused(
    topics: tuple[TxnOffsetCommitRequestTopic, ...], error: ErrorCode
) -> tuple[TxnOffsetCommitResponseTopic, ...]:
    return tuple(
        TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=tuple(
                TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=error)
                for part in topic.partitions
            ),
        )
        for topic in topics
    )
