"""Authorization of producer ids and transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from ottla.broker.authorization.guarding import Denials, filtered
from ottla.broker.authorization.refusals import refusal, refusing
from ottla.broker.authorization.rules import Each, Resource
from ottla.broker.requests.answers import after, then
from ottla.broker.requests.turns import Turns
from ottla.core.errors import ErrorCode
from ottla.storage.catalog.entries import AclOperation, ResourceType
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from ottla.broker.authorization.authorizer import Authorizer
    from ottla.broker.broker import Broker
    from ottla.broker.requests.answers import Handler, NowOrLater
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.turns import InTurns
    from ottla.wire.messages.describe_transactions import (
        DescribeTransactionsRequest,
        DescribeTransactionsResponse,
        TransactionState,
    )

_TRANSACTION: Final = ResourceType.TRANSACTIONAL_ID
_DESCRIBED: Final = Each(
    AclOperation.DESCRIBE, _TRANSACTION, "transactional_ids", "transaction_states", lambda _, one: str(one)
)
_FOR_BROKERS_SINCE: Final = 4


def init_producer_id(
    authorizer: Authorizer, handler: Handler, broker: Broker, request: InitProducerIdRequest, context: Context
) -> NowOrLater:
    if request.transactional_id is not None:
        is_allowed = authorizer.check(context, AclOperation.WRITE, _TRANSACTION, request.transactional_id)
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    else:
        # WRITE on any topic implies IDEMPOTENT_WRITE (KIP-679).
        is_allowed = authorizer.may_write_somewhere(context) or authorizer.check_cluster(
            context, AclOperation.IDEMPOTENT_WRITE
        )
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if is_allowed:
        return handler(broker, request, context)
    return refusal(InitProducerIdResponse, None, code, context.version)


def add_partitions_to_txn(
    authorizer: Authorizer, handler: Handler, broker: Broker, request: AddPartitionsToTxnRequest, context: Context
) -> NowOrLater:
    if context.version >= _FOR_BROKERS_SINCE:
        if authorizer.check_cluster(context, AclOperation.CLUSTER_ACTION):
            return handler(broker, request, context)
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def go_on(refused: tuple[AddPartitionsToTxnTopicResult, ...]) -> NowOrLater:
        if not refused:
            return handler(broker, request, context)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=refused)

    return after(_unwritable(authorizer, request, context), go_on)


def _unwritable(
    authorizer: Authorizer, request: AddPartitionsToTxnRequest, context: Context
) -> InTurns[tuple[AddPartitionsToTxnTopicResult, ...]]:
    """Errors for all topics if the transactional id or any of the topics is denied."""
    topics = request.v3_and_below_topics
    turns = Turns()
    if authorizer.check(context, AclOperation.WRITE, _TRANSACTION, request.v3_and_below_transactional_id):
        # All or nothing: topics that could have been added get OPERATION_NOT_ATTEMPTED.
        codes = {True: ErrorCode.OPERATION_NOT_ATTEMPTED, False: ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        denials = Denials(authorizer, context)
        allowed = []
        for topic in topics:
            allowed.append(denials.check(AclOperation.WRITE, Resource(ResourceType.TOPIC, topic.name)))
            if turns.are_over():
                yield
        denials.note()
        if all(allowed):
            return ()
        said = [codes[is_allowed] for is_allowed in allowed]
    else:
        said = [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * len(topics)
    refused = []
    for topic, code in zip(topics, said, strict=True):
        refused.append((yield from refusing(AddPartitionsToTxnTopicResult, topic, code, context.version, turns)))
        if turns.are_over():
            yield
    return tuple(refused)


def describe_transactions(
    authorizer: Authorizer, handler: Handler, broker: Broker, request: DescribeTransactionsRequest, context: Context
) -> NowOrLater:
    """Describe visible transactions with only those topics that the client may describe."""

    def visible(state: TransactionState) -> TransactionState:
        topics = (
            one
            for one in state.topics
            if authorizer.is_allowed(context, AclOperation.DESCRIBE, ResourceType.TOPIC, one.topic)
        )
        return structs.replace(state, topics=tuple(topics))

    def all_visible(response: DescribeTransactionsResponse) -> DescribeTransactionsResponse:
        states = tuple(visible(state) for state in response.transaction_states)
        return structs.replace(response, transaction_states=states)

    return then(filtered(_DESCRIBED, authorizer, handler, broker, request, context), all_visible)
