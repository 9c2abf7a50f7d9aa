"""OffsetFetch (9): the committed offsets of groups.

Up to version 7 the request names one group and the response is `topics`; from version 8 both have `groups`.
From version 10 with topic ids.
"""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    NO_UUID,
    Bool,
    Int16,
    Int32,
    Int64,
    Message,
    NullableSince,
    NullableString,
    Request,
    Response,
    Since,
    String,
    Until,
    Uuid,
)


class OffsetFetchResponsePartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, Since(5)] = -1
    metadata: NullableString
    error_code: Int16


class OffsetFetchResponseTopic(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[OffsetFetchResponsePartition, ...]


class OffsetFetchResponsePartitions(Message, frozen=True, kw_only=True):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = -1
    metadata: NullableString
    error_code: Int16


class OffsetFetchResponseTopics(Message, frozen=True, kw_only=True):
    name: Annotated[String, Until(9)] = ""
    topic_id: Annotated[Uuid, Since(10)] = NO_UUID
    partitions: tuple[OffsetFetchResponsePartitions, ...]


class OffsetFetchResponseGroup(Message, frozen=True, kw_only=True):
    group_id: String
    topics: tuple[OffsetFetchResponseTopics, ...]
    error_code: Int16 = 0


class OffsetFetchResponse(Response, frozen=True, kw_only=True):
    API = apis.OFFSET_FETCH

    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    topics: Annotated[tuple[OffsetFetchResponseTopic, ...], Until(7)] = ()
    error_code: Annotated[Int16, Since(2), Until(7)] = 0
    groups: Annotated[tuple[OffsetFetchResponseGroup, ...], Since(8)] = ()


class OffsetFetchRequestTopic(Message, frozen=True, kw_only=True):
    name: String
    partition_indexes: tuple[Int32, ...]


class OffsetFetchRequestTopics(Message, frozen=True, kw_only=True):
    name: Annotated[String, Until(9)] = ""
    topic_id: Annotated[Uuid, Since(10)] = NO_UUID
    partition_indexes: tuple[Int32, ...]


class OffsetFetchRequestGroup(Message, frozen=True, kw_only=True):
    group_id: String
    member_id: Annotated[NullableString, Since(9)] = None
    member_epoch: Annotated[Int32, Since(9)] = -1
    topics: tuple[OffsetFetchRequestTopics, ...] | None


class OffsetFetchRequest(Request, frozen=True, kw_only=True):
    API = apis.OFFSET_FETCH
    RESPONSE: ClassVar = OffsetFetchResponse

    group_id: Annotated[String, Until(7)] = ""
    topics: Annotated[tuple[OffsetFetchRequestTopic, ...] | None, Until(7), NullableSince(2)] = None
    groups: Annotated[tuple[OffsetFetchRequestGroup, ...], Since(8)] = ()
    require_stable: Annotated[Bool, Since(7)] = False
