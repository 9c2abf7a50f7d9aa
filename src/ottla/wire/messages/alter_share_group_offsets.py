"""AlterShareGroupOffsets (91): set the start offsets of a share group."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Int64, Message, NullableString, Request, Response, String, Uuid


class AlterShareGroupOffsetsResponsePartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    error_code: Int16
    error_message: NullableString = None


class AlterShareGroupOffsetsResponseTopic(Message, frozen=True, kw_only=True):
    topic_name: String
    topic_id: Uuid
    partitions: tuple[AlterShareGroupOffsetsResponsePartition, ...]


class AlterShareGroupOffsetsResponse(Response, frozen=True, kw_only=True):
    API = apis.ALTER_SHARE_GROUP_OFFSETS

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString = None
    responses: tuple[AlterShareGroupOffsetsResponseTopic, ...]


class AlterShareGroupOffsetsRequestPartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    start_offset: Int64


class AlterShareGroupOffsetsRequestTopic(Message, frozen=True, kw_only=True):
    topic_name: String
    partitions: tuple[AlterShareGroupOffsetsRequestPartition, ...]


class AlterShareGroupOffsetsRequest(Request, frozen=True, kw_only=True):
    API = apis.ALTER_SHARE_GROUP_OFFSETS
    RESPONSE: ClassVar = AlterShareGroupOffsetsResponse

    group_id: String
    topics: tuple[AlterShareGroupOffsetsRequestTopic, ...]
