"""Offset ranges: how many offsets a micro-batch has, and how they are split among tasks. Pure rules."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ottla.core.ids import TopicPartition
    from ottla.spark.reader.offsets import Offsets

LARGE_RANGE: Final = 2_000_000
"""The default maximum of offsets per task: about two seconds of work."""

SMALL_TASK: Final = 25_000
"""Maximum number of offsets in a task that reads several ranges: starting another Python task would take longer."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets of a partition from `start` to below `end`."""

    at: TopicPartition
    start: int
    end: int
    topic_id: bytes = b""
    """The topic id: a re-created topic has another."""
    files: tuple[str, ...] = ()
    """The archive files with these records; empty to read them from the broker."""

    @property
    def size(self) -> int:
        return self.end - self.start


def split(ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    """Split ranges in proportion to their size into at least `minPartitions` tasks, each with a limited number of
    records, as Spark's Kafka connector does.
    """
    limit = max_records or (LARGE_RANGE if min_partitions is None else None)
    pieces = [each for each in sorted(ranges, key=lambda each: (each.at, each.start)) if each.size > 0]
    if limit is not None:
        pieces = [piece for each in pieces for piece in _divide(each, math.ceil(each.size / limit))]
    if min_partitions is None or len(pieces) >= min_partitions:
        return pieces
    total = sum(each.size for each in pieces)
    large = [each for each in pieces if _share(each.size, total, min_partitions) > 1]
    large_total = sum(each.size for each in large)
    left = max(min_partitions - (len(pieces) - len(large)), 1)
    return [
        piece
        for each in pieces
        for piece in _divide(each, _share(each.size, large_total, left) if each in large else 1)
    ]


def _share(size: int, total: int, count: int) -> int:
    return max(math.floor(size / total * count + 0.5), 1)


def _divide(whole: OffsetRange, count: int) -> list[OffsetRange]:
    edges = [whole.start + whole.size * i // count for i in range(count + 1)]
    return [replace(whole, start=start, end=end) for start, end in pairwise(edges) if end > start]


def grouped(
    ranges: Sequence[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[tuple[OffsetRange, ...]]:
    """The ranges of each task: small neighbouring ranges share a task, unless minPartitions is set."""
    limit = 0 if min_partitions is not None else min(SMALL_TASK, max_records or SMALL_TASK)
    groups: list[tuple[OffsetRange, ...]] = []
    size = limit
    for each in ranges:
        if size + each.size <= limit:
            groups[-1] += (each,)
            size += each.size
        else:
            groups.append((each,))
            size = each.size
    return groups


def limited(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], limit: int) -> Offsets:
    """About `limit` offsets in total, shared among partitions by their backlog, as the connector does."""
    sizes = {at: offset - start[at] for at, offset in end.items() if offset > start[at]}
    total = sum(sizes.values())
    ends: Offsets = {}
    for at, offset in end.items():
        if at not in sizes:
            ends[at] = offset
            continue
        share = limit * (sizes[at] / total)
        ends[at] = min(start[at] + (math.ceil(share) if share < 1 else math.floor(share)), offset)
    return ends


def is_enough(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], least: int) -> bool:
    """Whether there are at least this many new offsets."""
    return sum(max(0, offset - start.get(at, offset)) for at, offset in end.items()) >= least
