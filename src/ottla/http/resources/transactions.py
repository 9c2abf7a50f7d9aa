"""Transactions: list, describe and abort."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.core.errors import ErrorCode
from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.models import Done, RequestStruct, Struct
from ottla.http.framework.problems import BadRequest
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest

if TYPE_CHECKING:
    from ottla.http.framework.endpoints import Call
    from ottla.wire.messages.describe_transactions import TransactionState

_TIMEOUT_MS: Final = 1_000


class TransactionQuery(RequestStruct, frozen=True, kw_only=True):
    state: tuple[str, ...] = ()
    """Only transactions in this state, such as Ongoing."""
    longer_than_ms: Annotated[int, msgspec.Meta(ge=-1, le=(1 << 63) - 1)] = -1
    """Only transactions that have been running for longer."""


class TransactionSummary(Struct, frozen=True, kw_only=True):
    id: str
    producer_id: int
    state: str


class TransactionList(Struct, frozen=True, kw_only=True):
    transactions: list[TransactionSummary]


class TransactionPartition(Struct, frozen=True, kw_only=True):
    topic: str
    partition: int


class Transaction(Struct, frozen=True, kw_only=True):
    id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    """Null without an open transaction."""
    partitions: list[TransactionPartition]
    """Its partitions, including those of group offsets."""


async def list_transactions(call: Call) -> TransactionList:
    query = call.query(TransactionQuery)
    request = ListTransactionsRequest(
        state_filters=query.state, producer_id_filters=(), duration_filter=query.longer_than_ms
    )
    answer = await call.ask(request)
    raise_refusal(answer.error_code)
    if answer.unknown_state_filters:
        names = ", ".join(answer.unknown_state_filters)
        raise BadRequest(f"query: unknown state {names}", hint="Such as Ongoing, Empty or CompleteCommit.")
    found = sorted(answer.transaction_states, key=lambda one: one.transactional_id)
    return TransactionList(
        transactions=[
            TransactionSummary(id=one.transactional_id, producer_id=one.producer_id, state=one.transaction_state)
            for one in found
        ]
    )


async def show_transaction(call: Call) -> Transaction:
    described = await _described(call)
    return Transaction(
        id=described.transactional_id,
        state=described.transaction_state,
        producer_id=described.producer_id,
        producer_epoch=described.producer_epoch,
        timeout_ms=described.transaction_timeout_ms,
        started_ms=None if described.transaction_start_time_ms < 0 else described.transaction_start_time_ms,
        partitions=[
            TransactionPartition(topic=topic.topic, partition=number)
            for topic in described.topics
            for number in topic.partitions
        ],
    )


async def abort_transaction(call: Call) -> Done:
    """Abort a transaction like a new producer with this id: fences the current producer and aborts its open
    transaction.
    """
    described = await _described(call)  # InitProducerId would create an unknown id
    asked = InitProducerIdRequest(transactional_id=described.transactional_id, transaction_timeout_ms=_TIMEOUT_MS)
    raise_refusal((await call.ask(asked)).error_code)
    return Done()


async def _described(call: Call) -> TransactionState:
    name = call.path("id")
    answer = await call.ask(DescribeTransactionsRequest(transactional_ids=(name,)))
    described: TransactionState = answer.transaction_states[0]
    is_unknown = described.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    raise_refusal(described.error_code, f"no transactional id {name!r}" if is_unknown else None)
    return described


_TRANSACTION: Final = "/v1/transactions/{id}"

ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/v1/transactions",
        list_transactions,
        "All transactional ids and their states",
        query=TransactionQuery,
        answer=TransactionList,
    ),
    Endpoint("GET", _TRANSACTION, show_transaction, "A transactional id and its open transaction", answer=Transaction),
    Endpoint("DELETE", _TRANSACTION, abort_transaction, "Abort the transaction and fence its producer", answer=Done),
)
