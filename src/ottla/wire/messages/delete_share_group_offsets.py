"""DeleteShareGroupOffsets (92): delete a share group's offsets of topics."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Message, NullableString, Request, Response, String, Uuid


class DeleteShareGroupOffsetsResponseTopic(Message, frozen=True, kw_only=True):
    topic_name: String
    topic_id: Uuid
    error_code: Int16
    error_message: NullableString = None


class DeleteShareGroupOffsetsResponse(Response, frozen=True, kw_only=True):
    API = apis.DELETE_SHARE_GROUP_OFFSETS

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString = None
    responses: tuple[DeleteShareGroupOffsetsResponseTopic, ...]


class DeleteShareGroupOffsetsRequestTopic(Message, frozen=True, kw_only=True):
    topic_name: String


class DeleteShareGroupOffsetsRequest(Request, frozen=True, kw_only=True):
    API = apis.DELETE_SHARE_GROUP_OFFSETS
    RESPONSE: ClassVar = DeleteShareGroupOffsetsResponse

    group_id: String
    topics: tuple[DeleteShareGroupOffsetsRequestTopic, ...]
