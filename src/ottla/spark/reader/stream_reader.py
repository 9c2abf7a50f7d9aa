"""A streaming read. Spark asks for the latest offsets, plans a micro-batch up to them, and asks again. One process
does the planning for the whole query, and keeps the state. The reader is also pickled into every task, which uses only
its options.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from ottla.spark.errors import cut_short, ends_before_it_begins, partition_gone
from ottla.spark.link import link_to
from ottla.spark.reader.batch_reader import RangePartition
from ottla.spark.reader.following import Following
from ottla.spark.reader.losing import lose
from ottla.spark.reader.offsets import from_tree, to_tree
from ottla.spark.reader.ranges import OffsetRange, grouped, is_enough, limited, split
from ottla.spark.reader.tasks import read_ranges
from ottla.spark.reader.topic_layout import cluster_of
from ottla.spark.reporting.progress import GroupProgress

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from ottla.spark.reader.decoded import DecodedRecords
    from ottla.spark.reader.offsets import Offsets, OffsetTree
    from ottla.spark.reader.options import SourceOptions


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._planner: _Planner | None = None
        self.decode: DecodedRecords | None = None
        """Decodes values and keys with schema ids."""

    @property
    def _planning(self) -> _Planner:
        # Created on first use: a reader in a task plans nothing.
        if self._planner is None:
            self._planner = _Planner(self._options)
        return self._planner

    def initialOffset(self) -> OffsetTree:  # noqa: N802 - Spark's name
        return to_tree(self._planning.first_offsets())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._planning.stop_at_current_end()

    def latestOffset(self, start: OffsetTree, limit: ReadLimit) -> OffsetTree:  # noqa: N802 - Spark's name
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return to_tree(self._planning.next_end(from_tree(start), most))

    def reportLatestOffset(self) -> OffsetTree | None:  # noqa: N802 - Spark's name
        return to_tree(self._planning.seen)

    def partitions(self, start: OffsetTree, end: OffsetTree) -> list[InputPartition]:
        ranges = self._planning.ranges(from_tree(start), from_tree(end))
        groups = grouped(ranges, self._options.min_partitions, self._options.max_records_per_partition)
        return [RangePartition(*each) for each in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, RangePartition):
            records = read_ranges(partition.ranges, self._options, self._schema)
            yield from records if self.decode is None else self.decode(records)


class _Planner:
    def __init__(self, options: SourceOptions) -> None:
        link = link_to(options.kafka)
        self._options = options
        self._cluster = cluster_of(options)
        self._progress = None if options.group is None else GroupProgress(link, options.group)
        self._following = Following(self._cluster, options)
        self._last_trigger_s = monotonic()
        self._first: Offsets | None = None
        self._target: Offsets | None = None
        self.seen: Offsets = {}
        """The last known end offsets."""

    def first_offsets(self) -> Offsets:
        """Spark asks twice for the first micro-batch, and `latest` must be the same both times."""
        if self._first is None:
            partitions = self._cluster.partitions(self._options.selection)
            self._first = self._cluster.resolve(self._options.starting, partitions)
        return self._first

    def stop_at_current_end(self) -> None:
        self._target = self._cluster.latest(self._cluster.existing(self._options.selection))

    def next_end(self, done: Offsets, most: int | None) -> Offsets:
        """The end offsets of the next micro-batch; those of the last one if none is due yet."""
        partitions = self._following.look(done)
        if self._progress is not None:
            # Spark asks for more only when the last micro-batch is done.
            self._progress.tell(done)
        self.seen = self._cluster.latest(partitions)
        start = self._following.starts(done)
        end = self._reachable(start)
        if self._is_too_early(start, end):
            return done
        self._last_trigger_s = monotonic()
        return end if most is None else limited(start, end, most)

    def _reachable(self, start: Offsets) -> Offsets:
        ends: Offsets = {}
        for at, latest in self.seen.items():
            if latest < start[at]:
                lose(cut_short(at, start[at] - 1, latest), self._options)
            if self._target is None:
                ends[at] = latest
            elif at in self._target:
                ends[at] = min(latest, self._target[at])
        return ends

    def _is_too_early(self, start: Offsets, end: Offsets) -> bool:
        """Whether to wait for more records (minOffsetsPerTrigger); never with AvailableNow, which would not end."""
        least = self._options.min_offsets_per_trigger
        if least is None or self._target is not None or is_enough(start, end, least):
            return False
        return (monotonic() - self._last_trigger_s) * 1000 < self._options.max_trigger_delay_ms

    def ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        partitions = self._following.known or self._following.look(start)
        starts = self._following.starts(start)
        ranges = []
        for at, stop in end.items():
            if at not in partitions:
                lose(partition_gone(str(at)), self._options)
                continue
            if stop < starts[at]:
                lose(ends_before_it_begins(at, starts[at], stop), self._options)
            ranges.append(OffsetRange(at, starts[at], stop, partitions[at]))
        divided = self._cluster.divided([each for each in ranges if each.size > 0])
        return split(divided, self._options.min_partitions, self._options.max_records_per_partition)
