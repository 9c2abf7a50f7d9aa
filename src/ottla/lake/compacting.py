"""Merging of small data files. `choose` is a pure rule."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import pyarrow as pa

from ottla.columns.arrow_types import with_schema
from ottla.lake.upserting import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyiceberg.table import FileScanTask

    from ottla.lake.topic_table import TopicTable

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)
_LARGE_BYTES: Final = 32 << 20
"""Files of this size are left alone."""
_MERGED_BYTES: Final = 64 << 20
"""Of the files that are merged into one; they are decoded in memory."""
_SMALLEST_TIER_BYTES: Final = 64 << 10
_FAN_OUT: Final = 8
"""Files of similar size before they are merged: each row is rewritten a few times, not with every merge."""


class Merged(NamedTuple):
    before: int = 0
    after: int = 0


def choose(sizes: Mapping[T, int], *, is_thorough: bool = False) -> list[list[T]]:
    """Which files of a partition are merged into one each, in their order; thorough: all that are small."""
    tiers: dict[int, list[T]] = {}
    for name, size in sizes.items():
        if size < _LARGE_BYTES:
            tiers.setdefault(0 if is_thorough else _tier(size), []).append(name)
    least = 2 if is_thorough else _FAN_OUT
    bins = [each for tier in tiers.values() if len(tier) >= least for each in _bins(tier, sizes)]
    return [each for each in bins if len(each) > 1]


def _tier(size: int) -> int:
    tier = 0
    while size > _SMALLEST_TIER_BYTES * _FAN_OUT**tier:
        tier += 1
    return tier


def _bins(names: Iterable[T], sizes: Mapping[T, int]) -> list[list[T]]:
    bins: list[list[T]] = [[]]
    total = 0
    for name in names:
        if total + sizes[name] > _MERGED_BYTES:
            bins.append([])
            total = 0
        bins[-1].append(name)
        total += sizes[name]
    return bins


def compact(table: TopicTable, *, is_thorough: bool = False) -> Merged:
    """Merge small files in one commit. If another program commits first, nothing happens until the next time."""
    partitions: dict[tuple[int, str], dict[str, FileScanTask]] = {}
    for task in sorted(table.table.scan().plan_files(), key=lambda each: str(each.file.file_path)):
        of_partition = partitions.setdefault((task.file.spec_id, repr(task.file.partition)), {})
        of_partition[task.file.file_path] = task
    schema = table.arrow_schema()
    removed, added = [], []
    for tasks in partitions.values():
        sizes = {path: each.file.file_size_in_bytes for path, each in tasks.items()}
        for paths in choose(sizes, is_thorough=is_thorough):
            batches = [
                with_schema(each, schema) for path in paths for each in read(table.table, [tasks[path]]).to_batches()
            ]
            removed += [tasks[path].file for path in paths]
            if batches:
                added += table.write(pa.Table.from_batches(batches, schema))
    if not removed or not table.replace_files(removed, added):
        return Merged()
    _log.info("%s: merged %d files into %d", table.name, len(removed), len(added))
    return Merged(len(removed), len(added))
