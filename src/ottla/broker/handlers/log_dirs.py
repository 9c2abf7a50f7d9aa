"""DescribeLogDirs (35): disk usage of partitions, and free space."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import ErrorCode
from ottla.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.requests.context import Context
    from ottla.core.ids import TopicPartition

_LOG_SUFFIX: Final = ".log"
_NO_LAG: Final = 0


class _Usage(NamedTuple):
    total_bytes: int
    usable_bytes: int
    unopened: dict[TopicPartition, int]
    """The sizes of logs that were not opened so far, measured without opening them."""


async def describe_log_dirs(
    broker: Broker, request: DescribeLogDirsRequest, _context: Context
) -> DescribeLogDirsResponse:
    wanted = _wanted(broker, request)
    folder = broker.data_dir.path.absolute()
    unopened = [partition.at for partition in wanted if not partition.is_open]
    try:
        usage = await asyncio.get_running_loop().run_in_executor(None, _usage, folder, unopened)
    except OSError:
        failed = DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(folder), topics=())
        return DescribeLogDirsResponse(results=(failed,))
    result = DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=str(folder),
        topics=_topics(wanted, usage.unopened),
        total_bytes=usage.total_bytes,
        usable_bytes=usage.usable_bytes,
    )
    return DescribeLogDirsResponse(results=(result,))


def _wanted(broker: Broker, request: DescribeLogDirsRequest) -> list[Partition]:
    """The requested partitions; null means all. Partitions that do not exist on this node are omitted, as in Kafka."""
    if request.topics is None:
        return list(broker.topics.partitions_here())
    found = {}
    for topic in request.topics:
        state = broker.topics.by_name.get(topic.topic)
        for index in topic.partitions:
            if state is not None and 0 <= index < len(state.partitions):
                partition = state.partitions[index]
                if partition.is_here:
                    found[partition.at] = partition
    return list(found.values())


def _usage(folder: Path, unopened: Iterable[TopicPartition]) -> _Usage:
    disk = shutil.disk_usage(folder)
    return _Usage(disk.total, disk.free, {at: _size_of(folder / str(at)) for at in unopened})


def _size_of(folder: Path) -> int:
    try:
        with os.scandir(folder) as files:
            return sum(file.stat().st_size for file in files if file.name.endswith(_LOG_SUFFIX))
    except FileNotFoundError:
        # The partition has no folder yet, or retention has just deleted a file.
        return 0


def _topics(wanted: Iterable[Partition], unopened: dict[TopicPartition, int]) -> tuple[DescribeLogDirsTopic, ...]:
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in wanted:
        size = partition.log.size if partition.is_open else unopened.get(partition.at, 0)
        described = DescribeLogDirsPartition(
            partition_index=partition.at.partition, partition_size=size, offset_lag=_NO_LAG, is_future_key=False
        )
        by_topic.setdefault(partition.at.topic, []).append(described)
    return tuple(DescribeLogDirsTopic(name=name, partitions=tuple(partitions)) for name, partitions in by_topic.items())
