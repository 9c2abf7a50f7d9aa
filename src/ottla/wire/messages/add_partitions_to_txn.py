"""AddPartitionsToTxn (24): add partitions to a transaction.

Up to version 3 sent by producers, for one transaction (`v3_and_below_…`); from version 4 between brokers,
for many.
"""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bool, Int16, Int32, Int64, Message, Request, Response, Since, String, Until


class AddPartitionsToTxnPartitionResult(Message, frozen=True, kw_only=True):
    partition_index: Int32
    partition_error_code: Int16


class AddPartitionsToTxnTopicResult(Message, frozen=True, kw_only=True):
    name: String
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...]


class AddPartitionsToTxnResult(Message, frozen=True, kw_only=True):
    transactional_id: String
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...]


class AddPartitionsToTxnResponse(Response, frozen=True, kw_only=True):
    API = apis.ADD_PARTITIONS_TO_TXN

    throttle_time_ms: Int32 = 0
    results_by_topic_v3_and_below: Annotated[tuple[AddPartitionsToTxnTopicResult, ...], Until(3)] = ()
    error_code: Annotated[Int16, Since(4)] = 0
    results_by_transaction: Annotated[tuple[AddPartitionsToTxnResult, ...], Since(4)] = ()


class AddPartitionsToTxnTopic(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[Int32, ...]


class AddPartitionsToTxnTransaction(Message, frozen=True, kw_only=True):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    verify_only: Bool = False
    topics: tuple[AddPartitionsToTxnTopic, ...]


class AddPartitionsToTxnRequest(Request, frozen=True, kw_only=True):
    API = apis.ADD_PARTITIONS_TO_TXN
    RESPONSE: ClassVar = AddPartitionsToTxnResponse

    v3_and_below_transactional_id: Annotated[String, Until(3)] = ""
    v3_and_below_producer_id: Annotated[Int64, Until(3)] = 0
    v3_and_below_producer_epoch: Annotated[Int16, Until(3)] = 0
    v3_and_below_topics: Annotated[tuple[AddPartitionsToTxnTopic, ...], Until(3)] = ()
    transactions: Annotated[tuple[AddPartitionsToTxnTransaction, ...], Since(4)] = ()
