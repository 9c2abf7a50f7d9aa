"""ReadShareGroupStateSummary (87): the start offsets of a share group."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Int64, Message, NullableString, Request, Response, Since, String, Uuid


class PartitionResult(Message, frozen=True, kw_only=True):
    partition: Int32
    error_code: Int16
    error_message: NullableString = None
    state_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = -1
    delivery_complete_count: Annotated[Int32, Since(1)] = -1


class ReadShareGroupStateSummaryResult(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[PartitionResult, ...]


class ReadShareGroupStateSummaryResponse(Response, frozen=True, kw_only=True):
    API = apis.READ_SHARE_GROUP_STATE_SUMMARY

    results: tuple[ReadShareGroupStateSummaryResult, ...]


class PartitionData(Message, frozen=True, kw_only=True):
    partition: Int32
    leader_epoch: Int32


class ReadShareGroupStateSummaryTopic(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class ReadShareGroupStateSummaryRequest(Request, frozen=True, kw_only=True):
    API = apis.READ_SHARE_GROUP_STATE_SUMMARY
    RESPONSE: ClassVar = ReadShareGroupStateSummaryResponse

    group_id: String
    topics: tuple[ReadShareGroupStateSummaryTopic, ...]
