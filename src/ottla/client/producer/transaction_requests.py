"""Requests of a transactional producer to its coordinators, before and since KIP-890."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from ottla.client.connections import Purpose
from ottla.client.errors import BrokerUnavailable, ClientError, broker_error
from ottla.client.retries import RetryBudget
from ottla.core.errors import ErrorCode
from ottla.wire.consumer_protocol import by_topic
from ottla.wire.declare import Response
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from ottla.client.connection import Connection
    from ottla.client.group.interface import GroupProgress
    from ottla.client.producer.batch import Identity
    from ottla.client.router import Router
    from ottla.core.ids import TopicPartition
    from ottla.wire.codec import RequestFor

ResponseT = TypeVar("ResponseT", bound=Response)

GROUP: Final = 0
TRANSACTION: Final = 1
_MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
_LAST_ADD: Final = 3


class TransactionProtocol(NamedTuple):
    """A transaction protocol: its highest request versions, which determine the rest."""

    produce: int
    commit_offsets: int
    end: int
    joins_by_writing: bool
    """Writing to a partition, or committing a group's offsets, adds it to the transaction implicitly.
    And every transaction ends with an epoch bump."""


NAMED_FIRST: Final = TransactionProtocol(produce=11, commit_offsets=4, end=4, joins_by_writing=False)
JOINED_BY_WRITING: Final = TransactionProtocol(produce=12, commit_offsets=5, end=5, joins_by_writing=True)
FEATURE: Final = "transaction.version"
"""The protocol for a cluster's finalized features."""
_JOINED_BY_WRITING_SINCE: Final = 2


def flow_of(level: int) -> TransactionProtocol:
    return JOINED_BY_WRITING if level >= _JOINED_BY_WRITING_SINCE else NAMED_FIRST


class CoordinatorRequest(NamedTuple, Generic[ResponseT]):
    """A request, its coordinator, and the error in its response."""

    key: str
    kind: int
    request: RequestFor[ResponseT]
    error_of: Callable[[ResponseT], int]
    max_version: int | None = None


async def ask(router: Router, question: CoordinatorRequest[ResponseT]) -> ResponseT:
    """The coordinator's successful response; retriable errors are retried."""
    return (await ask_over(router, question))[0]


async def ask_over(router: Router, question: CoordinatorRequest[ResponseT]) -> tuple[ResponseT, Connection]:
    """Like `ask`, also returning the connection."""
    retries = RetryBudget(router)
    failed: ClientError
    while True:
        try:
            node_id = await router.coordinator(question.key, question.kind)
            connection = await router.connection(node_id, Purpose.ASK)
            version = connection.version_of(question.request.API, max_version=question.max_version)
            response = await connection.ask(question.request, version=version)
            code = question.error_of(response)
            if not code:
                return response, connection
            failed = broker_error(code, _about(question))
            is_lost = failed.code in _MOVED
        except BrokerUnavailable as unavailable:
            failed, is_lost = unavailable, True
        if is_lost:
            router.forget_coordinator(question.key, question.kind)
        if not failed.is_retriable or await retries.is_over():
            raise failed


def _about(question: CoordinatorRequest[Any]) -> str:
    what = {GROUP: "group", TRANSACTION: "transactional id"}[question.kind]
    return f"{question.request.API.name} of {what} {question.key!r}"


def init_producer_id(
    transactional_id: str, timeout_ms: int, identity: Identity
) -> CoordinatorRequest[InitProducerIdResponse]:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
    )
    return CoordinatorRequest(transactional_id, TRANSACTION, request, lambda answer: answer.error_code)


def add_partitions(
    transactional_id: str, identity: Identity, partitions: Collection[TopicPartition]
) -> CoordinatorRequest[AddPartitionsToTxnResponse]:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.epoch,
        v3_and_below_topics=tuple(
            AddPartitionsToTxnTopic(name=each.topic, partitions=each.partitions) for each in by_topic(partitions)
        ),
    )

    def error_of(answer: AddPartitionsToTxnResponse) -> int:
        topics = answer.results_by_topic_v3_and_below
        codes = [part.partition_error_code for topic in topics for part in topic.results_by_partition]
        # If one is rejected, the others are not attempted: their error code is not the cause.
        return _first(code for code in codes if code != ErrorCode.OPERATION_NOT_ATTEMPTED)

    return CoordinatorRequest(transactional_id, TRANSACTION, request, error_of, _LAST_ADD)


def add_offsets(transactional_id: str, identity: Identity, group: str) -> CoordinatorRequest[AddOffsetsToTxnResponse]:
    request = AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        group_id=group,
    )
    return CoordinatorRequest(transactional_id, TRANSACTION, request, lambda answer: answer.error_code, _LAST_ADD)


def commit_offsets(
    transactional_id: str, identity: Identity, progress: GroupProgress, flow: TransactionProtocol
) -> CoordinatorRequest[TxnOffsetCommitResponse]:
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=progress.group,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        generation_id=progress.generation,
        member_id=progress.member_id,
        group_instance_id=progress.instance_id,
        topics=tuple(
            TxnOffsetCommitRequestTopic(
                name=each.topic,
                partitions=tuple(
                    TxnOffsetCommitRequestPartition(
                        partition_index=at.partition,
                        committed_offset=committed.offset,
                        committed_leader_epoch=committed.leader_epoch,
                        committed_metadata=committed.metadata,
                    )
                    for at, committed in progress.offsets.items()
                    if at.topic == each.topic
                ),
            )
            for each in by_topic(progress.offsets)
        ),
    )

    def error_of(answer: TxnOffsetCommitResponse) -> int:
        return _first(part.error_code for topic in answer.topics for part in topic.partitions)

    return CoordinatorRequest(progress.group, GROUP, request, error_of, flow.commit_offsets)


def end(
    transactional_id: str, identity: Identity, flow: TransactionProtocol, *, is_commit: bool
) -> CoordinatorRequest[EndTxnResponse]:
    request = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        committed=is_commit,
    )
    return CoordinatorRequest(transactional_id, TRANSACTION, request, lambda answer: answer.error_code, flow.end)


def _first(codes: Iterable[int]) -> int:
    return next((code for code in codes if code), 0)
