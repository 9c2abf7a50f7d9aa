"""AlterPartitionReassignments (45): reassign partitions to other brokers, or cancel a reassignment."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bool, Int16, Int32, Message, NullableString, Request, Response, Since, String


class ReassignablePartitionResponse(Message, frozen=True, kw_only=True):
    partition_index: Int32
    error_code: Int16
    error_message: NullableString


class ReassignableTopicResponse(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[ReassignablePartitionResponse, ...]


class AlterPartitionReassignmentsResponse(Response, frozen=True, kw_only=True):
    API = apis.ALTER_PARTITION_REASSIGNMENTS

    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[Bool, Since(1)] = True
    error_code: Int16
    error_message: NullableString
    responses: tuple[ReassignableTopicResponse, ...]


class ReassignablePartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    replicas: tuple[Int32, ...] | None = None


class ReassignableTopic(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[ReassignablePartition, ...]


class AlterPartitionReassignmentsRequest(Request, frozen=True, kw_only=True):
    API = apis.ALTER_PARTITION_REASSIGNMENTS
    RESPONSE: ClassVar = AlterPartitionReassignmentsResponse

    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Annotated[Bool, Since(1)] = True
    topics: tuple[ReassignableTopic, ...]
