"""DescribeLogDirs (35): the disk usage of partitions."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bool, Int16, Int32, Int64, Message, Request, Response, Since, String


class DescribeLogDirsPartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: Bool


class DescribeLogDirsTopic(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[DescribeLogDirsPartition, ...]


class DescribeLogDirsResult(Message, frozen=True, kw_only=True):
    error_code: Int16
    log_dir: String
    topics: tuple[DescribeLogDirsTopic, ...]
    total_bytes: Annotated[Int64, Since(4)] = -1
    usable_bytes: Annotated[Int64, Since(4)] = -1
    is_cordoned: Annotated[Bool, Since(5)] = False


class DescribeLogDirsResponse(Response, frozen=True, kw_only=True):
    API = apis.DESCRIBE_LOG_DIRS

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(3)] = 0
    results: tuple[DescribeLogDirsResult, ...]


class DescribableLogDirTopic(Message, frozen=True, kw_only=True):
    topic: String
    partitions: tuple[Int32, ...]


class DescribeLogDirsRequest(Request, frozen=True, kw_only=True):
    API = apis.DESCRIBE_LOG_DIRS
    RESPONSE: ClassVar = DescribeLogDirsResponse

    topics: tuple[DescribableLogDirTopic, ...] | None
