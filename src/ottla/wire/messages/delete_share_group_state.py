"""DeleteShareGroupState (86): delete a share group's state of partitions."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Message, NullableString, Request, Response, String, Uuid


class PartitionResult(Message, frozen=True, kw_only=True):
    partition: Int32
    error_code: Int16
    error_message: NullableString = None


class DeleteShareGroupStateResult(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[PartitionResult, ...]


class DeleteShareGroupStateResponse(Response, frozen=True, kw_only=True):
    API = apis.DELETE_SHARE_GROUP_STATE

    results: tuple[DeleteShareGroupStateResult, ...]


class PartitionData(Message, frozen=True, kw_only=True):
    partition: Int32


class DeleteShareGroupStateTopic(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class DeleteShareGroupStateRequest(Request, frozen=True, kw_only=True):
    API = apis.DELETE_SHARE_GROUP_STATE
    RESPONSE: ClassVar = DeleteShareGroupStateResponse

    group_id: String
    topics: tuple[DeleteShareGroupStateTopic, ...]
