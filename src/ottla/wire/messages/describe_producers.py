"""DescribeProducers (61): the active producers of partitions, and their open transactions."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Int64, Message, NullableString, Request, Response, String


class ProducerState(Message, frozen=True, kw_only=True):
    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = -1


class PartitionResponse(Message, frozen=True, kw_only=True):
    partition_index: Int32
    error_code: Int16
    error_message: NullableString = None
    active_producers: tuple[ProducerState, ...]


class TopicResponse(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[PartitionResponse, ...]


class DescribeProducersResponse(Response, frozen=True, kw_only=True):
    API = apis.DESCRIBE_PRODUCERS

    throttle_time_ms: Int32 = 0
    topics: tuple[TopicResponse, ...]


class TopicRequest(Message, frozen=True, kw_only=True):
    name: String
    partition_indexes: tuple[Int32, ...]


class DescribeProducersRequest(Request, frozen=True, kw_only=True):
    API = apis.DESCRIBE_PRODUCERS
    RESPONSE: ClassVar = DescribeProducersResponse

    topics: tuple[TopicRequest, ...]
