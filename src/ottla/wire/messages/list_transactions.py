"""ListTransactions (66): the transactions this broker coordinates, filtered."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Int64, Message, NullableString, Request, Response, Since, String


class TransactionState(Message, frozen=True, kw_only=True):
    transactional_id: String
    producer_id: Int64
    transaction_state: String


class ListTransactionsResponse(Response, frozen=True, kw_only=True):
    API = apis.LIST_TRANSACTIONS

    throttle_time_ms: Int32 = 0
    error_code: Int16
    unknown_state_filters: tuple[String, ...]
    transaction_states: tuple[TransactionState, ...]


class ListTransactionsRequest(Request, frozen=True, kw_only=True):
    API = apis.LIST_TRANSACTIONS
    RESPONSE: ClassVar = ListTransactionsResponse

    state_filters: tuple[String, ...]
    producer_id_filters: tuple[Int64, ...]
    duration_filter: Annotated[Int64, Since(1)] = -1
    transactional_id_pattern: Annotated[NullableString, Since(2)] = None
