"""OffsetCommit (8): commit a group's offsets. From version 10 with topic ids."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    NO_UUID,
    Int16,
    Int32,
    Int64,
    Message,
    NullableString,
    Request,
    Response,
    Since,
    String,
    Until,
    Uuid,
)


class OffsetCommitResponsePartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    error_code: Int16


class OffsetCommitResponseTopic(Message, frozen=True, kw_only=True):
    name: Annotated[String, Until(9)] = ""
    topic_id: Annotated[Uuid, Since(10)] = NO_UUID
    partitions: tuple[OffsetCommitResponsePartition, ...]


class OffsetCommitResponse(Response, frozen=True, kw_only=True):
    API = apis.OFFSET_COMMIT

    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    topics: tuple[OffsetCommitResponseTopic, ...]


class OffsetCommitRequestPartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, Since(6)] = -1
    committed_metadata: NullableString


class OffsetCommitRequestTopic(Message, frozen=True, kw_only=True):
    name: Annotated[String, Until(9)] = ""
    topic_id: Annotated[Uuid, Since(10)] = NO_UUID
    partitions: tuple[OffsetCommitRequestPartition, ...]


class OffsetCommitRequest(Request, frozen=True, kw_only=True):
    API = apis.OFFSET_COMMIT
    RESPONSE: ClassVar = OffsetCommitResponse

    group_id: String
    generation_id_or_member_epoch: Int32 = -1
    member_id: String
    retention_time_ms: Annotated[Int64, Until(4)] = -1
    group_instance_id: Annotated[NullableString, Since(7)] = None
    topics: tuple[OffsetCommitRequestTopic, ...]
