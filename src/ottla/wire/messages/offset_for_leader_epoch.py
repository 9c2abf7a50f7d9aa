"""OffsetForLeaderEpoch (23): the end offset of a leader epoch, to detect truncation."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Int64, Message, Request, Response, Since, String


class EpochEndOffset(Message, frozen=True, kw_only=True):
    error_code: Int16
    partition: Int32
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Message, frozen=True, kw_only=True):
    topic: String
    partitions: tuple[EpochEndOffset, ...]


class OffsetForLeaderEpochResponse(Response, frozen=True, kw_only=True):
    API = apis.OFFSET_FOR_LEADER_EPOCH

    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetForLeaderTopicResult, ...]


class OffsetForLeaderPartition(Message, frozen=True, kw_only=True):
    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


class OffsetForLeaderTopic(Message, frozen=True, kw_only=True):
    topic: String
    partitions: tuple[OffsetForLeaderPartition, ...]


class OffsetForLeaderEpochRequest(Request, frozen=True, kw_only=True):
    API = apis.OFFSET_FOR_LEADER_EPOCH
    RESPONSE: ClassVar = OffsetForLeaderEpochResponse

    replica_id: Annotated[Int32, Since(3)] = -2
    topics: tuple[OffsetForLeaderTopic, ...]
