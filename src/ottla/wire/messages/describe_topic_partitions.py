"""DescribeTopicPartitions (75): topics and their partitions, a page at a time."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bool, Int16, Int32, Message, NullableString, Request, Response, String, Uuid


class DescribeTopicPartitionsResponsePartition(Message, frozen=True, kw_only=True):
    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = -1
    replica_nodes: tuple[Int32, ...]
    isr_nodes: tuple[Int32, ...]
    eligible_leader_replicas: tuple[Int32, ...] | None = None
    last_known_elr: tuple[Int32, ...] | None = None
    offline_replicas: tuple[Int32, ...]


class DescribeTopicPartitionsResponseTopic(Message, frozen=True, kw_only=True):
    error_code: Int16
    name: NullableString
    topic_id: Uuid
    is_internal: Bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...]
    topic_authorized_operations: Int32 = -2147483648


class Cursor(Message, frozen=True, kw_only=True):
    topic_name: String
    partition_index: Int32


class DescribeTopicPartitionsResponse(Response, frozen=True, kw_only=True):
    API = apis.DESCRIBE_TOPIC_PARTITIONS

    throttle_time_ms: Int32 = 0
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...]
    next_cursor: Cursor | None = None


class TopicRequest(Message, frozen=True, kw_only=True):
    name: String


class DescribeTopicPartitionsRequest(Request, frozen=True, kw_only=True):
    API = apis.DESCRIBE_TOPIC_PARTITIONS
    RESPONSE: ClassVar = DescribeTopicPartitionsResponse

    topics: tuple[TopicRequest, ...]
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None
