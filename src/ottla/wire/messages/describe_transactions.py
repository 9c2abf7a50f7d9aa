"""DescribeTransactions (65): state, age and partitions of transactions."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Int64, Message, Request, Response, String


class TopicData(Message, frozen=True, kw_only=True):
    topic: String
    partitions: tuple[Int32, ...]


class TransactionState(Message, frozen=True, kw_only=True):
    error_code: Int16
    transactional_id: String
    transaction_state: String
    transaction_timeout_ms: Int32
    transaction_start_time_ms: Int64
    producer_id: Int64
    producer_epoch: Int16
    topics: tuple[TopicData, ...]


class DescribeTransactionsResponse(Response, frozen=True, kw_only=True):
    API = apis.DESCRIBE_TRANSACTIONS

    throttle_time_ms: Int32 = 0
    transaction_states: tuple[TransactionState, ...]


class DescribeTransactionsRequest(Request, frozen=True, kw_only=True):
    API = apis.DESCRIBE_TRANSACTIONS
    RESPONSE: ClassVar = DescribeTransactionsResponse

    transactional_ids: tuple[String, ...]
