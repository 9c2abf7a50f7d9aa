"""ReadShareGroupState (84): the record states of a share group's partitions."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int8, Int16, Int32, Int64, Message, NullableString, Request, Response, String, Uuid


class StateBatch(Message, frozen=True, kw_only=True):
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


class PartitionResult(Message, frozen=True, kw_only=True):
    partition: Int32
    error_code: Int16
    error_message: NullableString = None
    state_epoch: Int32 = 0
    start_offset: Int64 = -1
    state_batches: tuple[StateBatch, ...] = ()


class ReadShareGroupStateResult(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[PartitionResult, ...]


class ReadShareGroupStateResponse(Response, frozen=True, kw_only=True):
    API = apis.READ_SHARE_GROUP_STATE

    results: tuple[ReadShareGroupStateResult, ...]


class PartitionData(Message, frozen=True, kw_only=True):
    partition: Int32
    leader_epoch: Int32


class ReadShareGroupStateTopic(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class ReadShareGroupStateRequest(Request, frozen=True, kw_only=True):
    API = apis.READ_SHARE_GROUP_STATE
    RESPONSE: ClassVar = ReadShareGroupStateResponse

    group_id: String
    topics: tuple[ReadShareGroupStateTopic, ...]
