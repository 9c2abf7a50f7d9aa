"""Produce (0)."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.broker.batches.inflating import AT_ONCE_BYTES
from ottla.broker.handlers.produce_in_transaction import check_in_transaction, join_transaction
from ottla.broker.requests.turns import FEW, Turns
from ottla.broker.topics import AUDIT
from ottla.core.config_values import shorten
from ottla.core.errors import ApiError, ErrorCode, InvalidRecord, InvalidRecords, InvalidTopic, ProtocolError
from ottla.core.security import AclOperation
from ottla.records.batch import TRANSACTIONAL
from ottla.records.compression import DecompressedTooLarge
from ottla.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from ottla.broker.batches.inflating import Allowance
    from ottla.broker.batches.topic_rules import Intake, Prepared
    from ottla.broker.broker import Broker
    from ottla.broker.coordinators.transaction_membership import InTransaction
    from ottla.broker.partition import Partition
    from ottla.broker.requests.context import Context

_logger: Final = logging.getLogger(__name__)

_BY_ID_SINCE: Final = 13
_REFUSED: Final = "refused produce request"
_ATTRIBUTES_AT: Final = 22
"""The lower byte of a batch's attributes."""

Unsafe = list[tuple["Partition", int]]
"""Appends that cannot be acknowledged yet: a partition, and the last offset."""


def produce(
    broker: Broker, request: ProduceRequest, context: Context
) -> ProduceResponse | Coroutine[object, object, ProduceResponse | None] | None:
    if request.acks not in (-1, 0, 1):
        return _all_refused(request, _InvalidRequiredAcks(f"acks must be -1, 0 or 1, got {request.acks}"))
    if request.transactional_id is not None:
        return _produce_in_transaction(broker, request, request.transactional_id, context)
    count = 0
    for topic in request.topic_data:
        count += len(topic.partition_data)
    if count > FEW:
        return _produce_many(broker, request, context)
    unsafe: Unsafe = []
    responses: list[TopicProduceResponse] = []
    for topic in request.topic_data:
        results: list[PartitionProduceResponse] = []
        for part in topic.partition_data:
            try:
                results.append(_append(broker, topic, part, context, unsafe, request))
            except _Deferred:
                done = [result for each in responses for result in each.partition_responses] + results
                return _produce_many(broker, request, context, done=done, unsafe=unsafe)
            except ApiError as refused:
                # An invalid partition never fails the others.
                results.append(_refused(broker, topic, part, context, refused))
        responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=tuple(results))
        )
    response = ProduceResponse(responses=tuple(responses))
    if request.acks == 0:
        _hang_up_on_errors(response)
        return None
    return _when_safe(broker, request, response, unsafe) if unsafe else response


async def _produce_in_transaction(
    broker: Broker, request: ProduceRequest, transactional_id: str, context: Context
) -> ProduceResponse | None:
    transaction = await join_transaction(broker, request, transactional_id, context.version)
    return await _produce_many(broker, request, context, transaction)


async def _produce_many(  # noqa: PLR0913
    broker: Broker,
    request: ProduceRequest,
    context: Context,
    transaction: InTransaction | None = None,
    *,
    done: Sequence[PartitionProduceResponse] = (),
    unsafe: Unsafe | None = None,
) -> ProduceResponse | None:
    """Like `produce`, in time slices, for many partitions or large batches.

    `done` has the results so far, `unsafe` the appends so far.
    """
    turns = Turns()
    unsafe = [] if unsafe is None else unsafe
    responses = []
    allowance = broker.inflating.allowance()
    before = iter(done)
    for topic in request.topic_data:
        results = []
        for part in topic.partition_data:
            if (result := next(before, None)) is not None:
                results.append(result)
                continue
            try:
                try:
                    results.append(_append(broker, topic, part, context, unsafe, request, transaction))
                except _Deferred as late:
                    prepared = await _prepared(broker, late, allowance)
                    results.append(_append(broker, topic, part, context, unsafe, request, transaction, prepared))
            except ApiError as refused:
                results.append(_refused(broker, topic, part, context, refused))
            if turns.are_over():
                await asyncio.sleep(0)
        responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=tuple(results))
        )
    response = ProduceResponse(responses=tuple(responses))
    if request.acks == 0:
        _hang_up_on_errors(response)
        return None
    return await _when_safe(broker, request, response, unsafe)


def _append(  # noqa: PLR0913
    broker: Broker,
    topic: TopicProduceData,
    part: PartitionProduceData,
    context: Context,
    unsafe: Unsafe,
    request: ProduceRequest,
    transaction: InTransaction | None = None,
    prepared: Prepared | None = None,
) -> PartitionProduceResponse:
    """Raises _NotAtOnce if the records must be prepared first."""
    partition, records = _checked(broker, topic, part, context, request, transaction)
    log = partition.log
    if partition.intake is None:
        appended = partition.append(records)
    else:
        prepared = prepared or _at_once(broker, partition, partition.intake, records)
        appended = partition.append(prepared.batch, has_keys=prepared.has_keys, is_checked=prepared.is_thinned)
    if not partition.role.is_safe(appended.last_offset, request.acks):
        unsafe.append((partition, appended.last_offset))
    return PartitionProduceResponse(
        index=part.index,
        error_code=0,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time,
        log_start_offset=log.start_offset,
    )


def _checked(  # noqa: PLR0913
    broker: Broker,
    topic: TopicProduceData,
    part: PartitionProduceData,
    context: Context,
    request: ProduceRequest,
    transaction: InTransaction | None,
) -> tuple[Partition, memoryview]:
    """The partition, if it may be written to."""
    records = part.records
    # Records are slices of the request's frame, which is not shared: the log may write offsets into them.
    if not isinstance(records, memoryview) or not records:
        raise InvalidRecord("a produce request without records")
    if context.header.version >= _BY_ID_SINCE:
        partition = broker.topics.partition_by_id(topic.topic_id, part.index)
    else:
        partition = broker.topics.partition(topic.name, part.index)
    if partition.at.topic.startswith("__") and broker.topics.by_name[partition.at.topic].entry.is_internal:
        check_internal_write(broker, partition.at.topic, context)
    partition.role.check_can_append(request.acks)
    if len(records) > _ATTRIBUTES_AT and records[_ATTRIBUTES_AT] & TRANSACTIONAL:
        check_in_transaction(transaction, partition, records, context.header.version)
    return partition, records


def check_internal_write(broker: Broker, topic: str, context: Context) -> None:
    """Raises InvalidTopic, unless it is the audit topic and a node of this cluster writes its audit log."""
    if topic != AUDIT or not _is_node(broker, context):
        raise InvalidTopic(f"clients may not write to the internal topic {topic}")


def _is_node(broker: Broker, context: Context) -> bool:
    from ottla.broker.security.audit_topic import AuditClient

    if isinstance(context.connection, AuditClient):
        return True
    authorizer = broker.security.authorizer
    if broker.replication is None:
        return False
    return authorizer is None or authorizer.check_cluster(context, AclOperation.CLUSTER_ACTION)


def _at_once(broker: Broker, partition: Partition, intake: Intake, records: memoryview) -> Prepared:
    try:
        prepared = intake.apply(records, AT_ONCE_BYTES)
    except DecompressedTooLarge:
        raise _Deferred(partition, intake, records) from None
    schemas = intake.schemas
    if schemas is not None and not broker.schemas.validation.accepts(partition.at.topic, schemas, prepared.batch):
        raise _Deferred(partition, intake, records)
    return prepared


async def _prepared(broker: Broker, late: _Deferred, allowance: Allowance) -> Prepared:
    intake, records = late.intake, late.records
    limit = broker.inflating.limit(len(records), intake.max_message_bytes)
    prepared = await broker.inflating.in_thread(partial(intake.apply, records), limit, allowance)
    allowance.left -= prepared.inflated_bytes
    if intake.schemas is not None:
        prepared = await broker.schemas.validation.settled(late.partition.at, intake.schemas, prepared, limit)
    return prepared


class _Deferred(Exception):  # noqa: N818 - not an error: it is done elsewhere
    """Decompressing the batch would block the event loop for too long, or its schema ids must be looked up."""

    def __init__(self, partition: Partition, intake: Intake, records: memoryview) -> None:
        self.partition = partition
        self.intake = intake
        self.records = records


def _refusal(index: int, refused: ApiError) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=refused.code, base_offset=-1, error_message=str(refused) or None
    )


_EXPLAINED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP})
"""Errors with details: the current leader, or the invalid records."""


def _refused(
    broker: Broker, topic: TopicProduceData, part: PartitionProduceData, context: Context, refused: ApiError
) -> PartitionProduceResponse:
    broker.dispatcher.refused(ProduceRequest.API, refused.code)
    name = topic.name or topic.topic_id.hex()
    if context.connection.state.get(_REFUSED) is not context.header:
        # One line per request, regardless of the number of partitions.
        context.connection.state[_REFUSED] = context.header
        _logger.info("%s-%d: refused a produce request of %s: %s", shorten(name), part.index, context, refused)
    refusal = _refusal(part.index, refused)
    if refused.code not in _EXPLAINED:
        return refusal
    state = broker.topics.by_id.get(topic.topic_id) or broker.topics.by_name.get(topic.name)
    if state is None or not part.records:
        return refusal
    partition = state.partitions[part.index]
    if refused.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        leader, epoch = partition.leader
        return replace(refusal, current_leader=LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch))
    if isinstance(refused, InvalidRecords):
        found = (
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in refused.problems
        )
        return replace(refusal, record_errors=tuple(found))
    from ottla.broker.batches.record_errors import record_errors  # not needed at the start

    errors = record_errors(part.records, refused.code, partition.log.config, broker.clock.now_ms())
    return replace(refusal, record_errors=errors)


def _all_refused(request: ProduceRequest, refused: ApiError) -> ProduceResponse:
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(_refusal(part.index, refused) for part in topic.partition_data),
            )
            for topic in request.topic_data
        )
    )


def _hang_up_on_errors(response: ProduceResponse) -> None:
    """With acks=0 the client is disconnected on errors, as by Kafka."""
    for topic in response.responses:
        for result in topic.partition_responses:
            if result.error_code:
                raise ProtocolError(f"a produce request with acks=0 failed: {result.error_message}")


async def _when_safe(
    broker: Broker, request: ProduceRequest, response: ProduceResponse, unsafe: Unsafe
) -> ProduceResponse:
    acks, timeout_s = request.acks, request.timeout_ms / 1000
    waits = [partition.until_safe(offset, acks=acks, timeout_s=timeout_s) for partition, offset in unsafe]
    results = await asyncio.gather(*waits, return_exceptions=True)
    failed: dict[tuple[str, int], ApiError] = {}
    for (partition, _), result in zip(unsafe, results, strict=True):
        if isinstance(result, ApiError):
            failed[partition.at.topic, partition.at.partition] = result
            broker.dispatcher.refused(ProduceRequest.API, result.code)
        elif isinstance(result, BaseException):
            # Any unexpected error must not look like success.
            raise result
    if not failed:
        return response
    return ProduceResponse(responses=tuple(_with_failures(broker, topic, failed) for topic in response.responses))


def _with_failures(
    broker: Broker, topic: TopicProduceResponse, failed: dict[tuple[str, int], ApiError]
) -> TopicProduceResponse:
    name = _name(broker, topic)
    results = tuple(
        _refusal(part.index, failed[name, part.index]) if (name, part.index) in failed else part
        for part in topic.partition_responses
    )
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=results)


def _name(broker: Broker, topic: TopicProduceResponse) -> str:
    state = broker.topics.by_id.get(topic.topic_id)
    return topic.name or (state.name if state else "")


class _InvalidRequiredAcks(ApiError):
    code = ErrorCode.INVALID_REQUIRED_ACKS
