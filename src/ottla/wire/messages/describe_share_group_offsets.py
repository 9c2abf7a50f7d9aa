"""DescribeShareGroupOffsets (90): the start offsets of share groups."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
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


class DescribeShareGroupOffsetsResponsePartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    start_offset: Int64
    leader_epoch: Int32
    lag: Annotated[Int64, Since(1)] = -1
    error_code: Int16
    error_message: NullableString = None


class DescribeShareGroupOffsetsResponseTopic(Message, frozen=True, kw_only=True):
    topic_name: String
    topic_id: Uuid
    partitions: tuple[DescribeShareGroupOffsetsResponsePartition, ...]


class DescribeShareGroupOffsetsResponseGroup(Message, frozen=True, kw_only=True):
    group_id: String
    topics: tuple[DescribeShareGroupOffsetsResponseTopic, ...]
    error_code: Int16
    error_message: NullableString = None


class DescribeShareGroupOffsetsResponse(Response, frozen=True, kw_only=True):
    API = apis.DESCRIBE_SHARE_GROUP_OFFSETS

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribeShareGroupOffsetsResponseGroup, ...]


class DescribeShareGroupOffsetsRequestTopic(Message, frozen=True, kw_only=True):
    topic_name: String
    partitions: tuple[Int32, ...]


class DescribeShareGroupOffsetsRequestGroup(Message, frozen=True, kw_only=True):
    group_id: String
    topics: tuple[DescribeShareGroupOffsetsRequestTopic, ...] | None


class DescribeShareGroupOffsetsRequest(Request, frozen=True, kw_only=True):
    API = apis.DESCRIBE_SHARE_GROUP_OFFSETS
    RESPONSE: ClassVar = DescribeShareGroupOffsetsResponse

    groups: tuple[DescribeShareGroupOffsetsRequestGroup, ...]
