"""OffsetDelete (47): delete a group's offsets of partitions that no member reads."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Message, Request, Response, String


class OffsetDeleteResponsePartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    error_code: Int16


class OffsetDeleteResponseTopic(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[OffsetDeleteResponsePartition, ...]


class OffsetDeleteResponse(Response, frozen=True, kw_only=True):
    API = apis.OFFSET_DELETE

    error_code: Int16
    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetDeleteResponseTopic, ...]


class OffsetDeleteRequestPartition(Message, frozen=True, kw_only=True):
    partition_index: Int32


class OffsetDeleteRequestTopic(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[OffsetDeleteRequestPartition, ...]


class OffsetDeleteRequest(Request, frozen=True, kw_only=True):
    API = apis.OFFSET_DELETE
    RESPONSE: ClassVar = OffsetDeleteResponse

    group_id: String
    topics: tuple[OffsetDeleteRequestTopic, ...]
