"""InitializeShareGroupState (83): initialize or reset a share group's state of partitions."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Int64, Message, NullableString, Request, Response, String, Uuid


class PartitionResult(Message, frozen=True, kw_only=True):
    partition: Int32
    error_code: Int16
    error_message: NullableString = None


class InitializeShareGroupStateResult(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[PartitionResult, ...]


class InitializeShareGroupStateResponse(Response, frozen=True, kw_only=True):
    API = apis.INITIALIZE_SHARE_GROUP_STATE

    results: tuple[InitializeShareGroupStateResult, ...]


class PartitionData(Message, frozen=True, kw_only=True):
    partition: Int32
    state_epoch: Int32
    start_offset: Int64


class InitializeShareGroupStateTopic(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class InitializeShareGroupStateRequest(Request, frozen=True, kw_only=True):
    API = apis.INITIALIZE_SHARE_GROUP_STATE
    RESPONSE: ClassVar = InitializeShareGroupStateResponse

    group_id: String
    topics: tuple[InitializeShareGroupStateTopic, ...]
