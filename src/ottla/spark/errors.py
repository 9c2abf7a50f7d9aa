"""Errors of reads and writes: each names the offsets, the cause, and the option that controls it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from ottla.core.ids import TopicPartition


class DataLoss(OttlaError):
    """Requested offsets were deleted."""


class SinkError(OttlaError):
    """Rows that cannot be written as they are."""


class SessionError(OttlaError):
    """No Spark session can be created."""


def aged_out(at: TopicPartition, start: int, end: int, earliest: int) -> DataLoss:
    gone = min(end, earliest)
    return _lost(f"{at}: offsets {start} to {gone - 1} are gone; the partition now begins at {earliest}")


def cut_short(at: TopicPartition, wanted: int, latest: int) -> DataLoss:
    return _lost(f"{at}: offset {wanted} is past the end, which is {latest}; the partition was longer before")


def not_archived(at: TopicPartition, start: int, end: int) -> DataLoss:
    return _lost(f"{at}: offsets {start} to {end - 1} are neither in the topic nor in its archive")


def topic_recreated(topic: str, at_offsets: str) -> DataLoss:
    return _lost(f"{topic} was deleted and re-created; the offsets {at_offsets} belong to the topic that is gone")


def partition_gone(partitions: str) -> DataLoss:
    return _lost(f"{partitions} were read before and no longer exist")


def ends_before_it_begins(at: TopicPartition, start: int, end: int) -> DataLoss:
    return _lost(
        f"{at}: the micro-batch to be repeated ends at offset {end}, and {start} is where it would begin; "
        "startingOffsets comes to another place than when it was planned"
    )


def late_partition(at: TopicPartition, earliest: int) -> DataLoss:
    return _lost(f"{at} is new and already begins at {earliest} instead of 0")


def _lost(what: str) -> DataLoss:
    return DataLoss(f"{what} (failOnDataLoss is true; set it to false to continue without them)")
