"""InitProducerId (22), AddPartitionsToTxn (24), AddOffsetsToTxn (25), EndTxn (26)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ottla.broker.topics import INTERNAL_TOPICS
from ottla.core.errors import ApiError, ErrorCode
from ottla.core.ids import TopicPartition
from ottla.transactions.transaction import EPOCH_PER_TRANSACTION
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context

_NONE: Final = -1
_MANY_SINCE: Final = 4
_AT_ONCE: Final = 500
_EPOCHS_SINCE: Final = 5
_INIT_FENCED_SINCE: Final = 4
_FENCED_SINCE: Final = 2
"""The first version of the other three in which a fenced producer gets PRODUCER_FENCED."""


async def init_producer_id(broker: Broker, request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse:
    if request.transactional_id is None:
        return _without_transactions(broker)
    expected = None
    if (request.producer_id, request.producer_epoch) != (_NONE, _NONE):
        if _NONE in (request.producer_id, request.producer_epoch):
            return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=_NONE)
        expected = request.producer_id, request.producer_epoch
    try:
        decided = await broker.transactions.init_producer_id(
            request.transactional_id, request.transaction_timeout_ms, expected
        )
    except ApiError as refused:
        return InitProducerIdResponse(error_code=refused.code, producer_epoch=_NONE)
    if decided.error is not ErrorCode.NONE:
        error = _fenced_as_known(decided.error, context.version, _INIT_FENCED_SINCE)
        return InitProducerIdResponse(error_code=error, producer_epoch=_NONE)
    return InitProducerIdResponse(error_code=0, producer_id=decided.producer_id, producer_epoch=decided.epoch)


def _without_transactions(broker: Broker) -> InitProducerIdResponse:
    try:
        producer_id = broker.producer_ids.next()
    except ApiError as refused:
        return InitProducerIdResponse(error_code=refused.code, producer_epoch=_NONE)
    return InitProducerIdResponse(error_code=0, producer_id=producer_id, producer_epoch=0)


def _fenced_as_known(error: ErrorCode, version: int, since: int) -> ErrorCode:
    is_older = error is ErrorCode.PRODUCER_FENCED and version < since
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_older else error


# Partitions


async def add_partitions_to_txn(
    broker: Broker, request: AddPartitionsToTxnRequest, context: Context
) -> AddPartitionsToTxnResponse:
    if context.version >= _MANY_SINCE:
        # Concurrently, as each may wait for replication; but not all of 20,000.
        added: list[tuple[AddPartitionsToTxnTopicResult, ...]] = []
        for start in range(0, len(request.transactions), _AT_ONCE):
            some = request.transactions[start : start + _AT_ONCE]
            added += await asyncio.gather(*(_added(broker, one, context.version) for one in some))
        return AddPartitionsToTxnResponse(
            results_by_transaction=tuple(
                AddPartitionsToTxnResult(transactional_id=one.transactional_id, topic_results=results)
                for one, results in zip(request.transactions, added, strict=True)
            )
        )
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await _added(broker, only, context.version))


async def _added(
    broker: Broker, asked: AddPartitionsToTxnTransaction, version: int
) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    wanted = [TopicPartition(topic.name, number) for topic in asked.topics for number in topic.partitions]
    errors = {at: _refusal(broker, at, version) for at in wanted}
    producer = asked.producer_id, asked.producer_epoch
    if any(errors.values()):
        # All or none.
        errors = {at: error or ErrorCode.OPERATION_NOT_ATTEMPTED for at, error in errors.items()}
    elif asked.verify_only:
        errors = await broker.transactions.verify(asked.transactional_id, producer, wanted)
    else:
        client_version = EPOCH_PER_TRANSACTION if version >= _MANY_SINCE else 0
        error = await broker.transactions.add_partitions(asked.transactional_id, producer, wanted, client_version)
        errors = dict.fromkeys(wanted, _fenced_as_known(error, version, _FENCED_SINCE))
    return tuple(_topic_result(topic, errors) for topic in asked.topics)


def _refusal(broker: Broker, at: TopicPartition, version: int) -> ErrorCode:
    # Other brokers send requests for the partition of a group's offsets.
    if at.topic in INTERNAL_TOPICS and version < _MANY_SINCE:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    try:
        broker.topics.partition(at.topic, at.partition)
    except ApiError as unknown:
        return unknown.code
    return ErrorCode.NONE


def _topic_result(
    topic: AddPartitionsToTxnTopic, errors: dict[TopicPartition, ErrorCode]
) -> AddPartitionsToTxnTopicResult:
    results: Iterable[AddPartitionsToTxnPartitionResult] = (
        AddPartitionsToTxnPartitionResult(
            partition_index=number, partition_error_code=errors[TopicPartition(topic.name, number)]
        )
        for number in topic.partitions
    )
    return AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=tuple(results))


async def add_offsets_to_txn(
    broker: Broker, request: AddOffsetsToTxnRequest, context: Context
) -> AddOffsetsToTxnResponse:
    """Adds the partition of the group's offsets to the transaction."""
    if not request.group_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        at = broker.groups.partition_of(request.group_id).at
    except ApiError:
        # The topic will be created soon.
        return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    producer = request.producer_id, request.producer_epoch
    error = await broker.transactions.add_partitions(request.transactional_id, producer, (at,))
    return AddOffsetsToTxnResponse(error_code=_fenced_as_known(error, context.version, _FENCED_SINCE))


# The end


async def end_txn(broker: Broker, request: EndTxnRequest, context: Context) -> EndTxnResponse:
    try:
        decided = await broker.transactions.end(
            request.transactional_id,
            (request.producer_id, request.producer_epoch),
            is_commit=request.committed,
            client_version=EPOCH_PER_TRANSACTION if context.version >= _EPOCHS_SINCE else 0,
        )
    except ApiError as refused:
        return EndTxnResponse(error_code=refused.code)
    return EndTxnResponse(
        error_code=_fenced_as_known(decided.error, context.version, _FENCED_SINCE),
        producer_id=decided.producer_id,
        producer_epoch=decided.epoch,
    )
