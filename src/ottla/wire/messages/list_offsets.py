"""ListOffsets (2): the offset for a timestamp, or a special one: -1 latest, -2 earliest and so on."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int8, Int16, Int32, Int64, Message, Request, Response, Since, String


class ListOffsetsPartitionResponse(Message, frozen=True, kw_only=True):
    partition_index: Int32
    error_code: Int16
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Annotated[Int32, Since(4)] = -1


class ListOffsetsTopicResponse(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[ListOffsetsPartitionResponse, ...]


class ListOffsetsResponse(Response, frozen=True, kw_only=True):
    API = apis.LIST_OFFSETS

    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    topics: tuple[ListOffsetsTopicResponse, ...]


class ListOffsetsPartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    current_leader_epoch: Annotated[Int32, Since(4)] = -1
    timestamp: Int64


class ListOffsetsTopic(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[ListOffsetsPartition, ...]


class ListOffsetsRequest(Request, frozen=True, kw_only=True):
    API = apis.LIST_OFFSETS
    RESPONSE: ClassVar = ListOffsetsResponse

    replica_id: Int32
    isolation_level: Annotated[Int8, Since(2)] = 0
    topics: tuple[ListOffsetsTopic, ...]
    timeout_ms: Annotated[Int32, Since(10)] = 0
