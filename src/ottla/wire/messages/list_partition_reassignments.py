"""ListPartitionReassignments (46): the reassignments in progress."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Message, NullableString, Request, Response, String


class OngoingPartitionReassignment(Message, frozen=True, kw_only=True):
    partition_index: Int32
    replicas: tuple[Int32, ...]
    adding_replicas: tuple[Int32, ...]
    removing_replicas: tuple[Int32, ...]


class OngoingTopicReassignment(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[OngoingPartitionReassignment, ...]


class ListPartitionReassignmentsResponse(Response, frozen=True, kw_only=True):
    API = apis.LIST_PARTITION_REASSIGNMENTS

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString
    topics: tuple[OngoingTopicReassignment, ...]


class ListPartitionReassignmentsTopics(Message, frozen=True, kw_only=True):
    name: String
    partition_indexes: tuple[Int32, ...]


class ListPartitionReassignmentsRequest(Request, frozen=True, kw_only=True):
    API = apis.LIST_PARTITION_REASSIGNMENTS
    RESPONSE: ClassVar = ListPartitionReassignmentsResponse

    timeout_ms: Int32 = 60000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = None
