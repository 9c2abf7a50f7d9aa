"""WriteShareGroupState (85): write record states of a share group."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    NullableString,
    Request,
    Response,
    Since,
    String,
    Uuid,
)


class StateBatch(Message, frozen=True, kw_only=True):
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


class PartitionResult(Message, frozen=True, kw_only=True):
    partition: Int32
    error_code: Int16
    error_message: NullableString = None


class WriteShareGroupStateResult(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[PartitionResult, ...]


class WriteShareGroupStateResponse(Response, frozen=True, kw_only=True):
    API = apis.WRITE_SHARE_GROUP_STATE

    results: tuple[WriteShareGroupStateResult, ...]


class PartitionData(Message, frozen=True, kw_only=True):
    partition: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, Since(1)] = -1
    state_batches: tuple[StateBatch, ...]


class WriteShareGroupStateTopic(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class WriteShareGroupStateRequest(Request, frozen=True, kw_only=True):
    API = apis.WRITE_SHARE_GROUP_STATE
    RESPONSE: ClassVar = WriteShareGroupStateResponse

    group_id: String
    topics: tuple[WriteShareGroupStateTopic, ...]
