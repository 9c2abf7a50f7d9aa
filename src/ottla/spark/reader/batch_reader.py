"""A batch read: the offsets are determined during planning, and read in tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.spark.errors import aged_out, cut_short
from ottla.spark.reader.filters import Wanted, wanted_by
from ottla.spark.reader.losing import lose
from ottla.spark.reader.ranges import OffsetRange, split
from ottla.spark.reader.scanning import FilePiece, plan_scan, scan_piece
from ottla.spark.reader.tasks import read_ranges
from ottla.spark.reader.topic_layout import cluster_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from ottla.spark.reader.decoded import DecodedRecords
    from ottla.spark.reader.options import SourceOptions
    from ottla.spark.reader.topic_layout import Cluster


class RangePartition(InputPartition):
    """A task that reads from a broker."""

    def __init__(self, *ranges: OffsetRange) -> None:
        self.ranges = ranges


class PiecePartition(InputPartition):
    """A task that reads a file."""

    def __init__(self, piece: FilePiece) -> None:
        self.piece = piece


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._wanted = Wanted()
        self.decode: DecodedRecords | None = None
        """Decodes values and keys with schema ids."""

    def partitions(self) -> list[InputPartition]:
        if self._options.path is not None:
            return [PiecePartition(piece) for piece in plan_scan(self._options, self._wanted)]
        return [RangePartition(each) for each in self._ranges()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        records = self._records(partition)
        return records if self.decode is None else self.decode(records)

    def _records(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # If there is nothing to read, Spark plans a task with its default partition, which reads nothing.
        if isinstance(partition, RangePartition):
            yield from read_ranges(partition.ranges, self._options, self._schema)
        elif isinstance(partition, PiecePartition):
            yield from scan_piece(partition.piece, self._options, self._schema)

    def _ranges(self) -> list[OffsetRange]:
        options, wanted = self._options, self._wanted
        cluster = cluster_of(options)
        partitions = cluster.partitions(options.selection)
        start = cluster.resolve(options.starting, partitions)
        end = cluster.resolve(options.ending, partitions)
        whole = [
            OffsetRange(at, start[at], end[at], topic_id) for at, topic_id in partitions.items() if wanted.takes(at)
        ]
        ranges = self._clipped(cluster.divided([each for each in whole if each.size > 0]), cluster)
        if wanted.from_time_ms is not None:
            first = cluster.at_time([each.at for each in ranges], wanted.from_time_ms)
            ranges = [replace(each, start=max(each.start, first[each.at])) for each in ranges]
        narrowed = [wanted.narrow(each) for each in ranges]
        return split(narrowed, options.min_partitions, options.max_records_per_partition)

    def _clipped(self, ranges: list[OffsetRange], cluster: Cluster) -> list[OffsetRange]:
        """The available parts of the ranges; archived ranges are complete."""
        live = [each for each in ranges if not each.files]
        earliest, latest = (find([each.at for each in live]) for find in (cluster.live_earliest, cluster.latest))
        for each in live:
            if each.start < earliest[each.at]:
                lose(aged_out(each.at, each.start, each.end, earliest[each.at]), self._options)
            if each.end > latest[each.at]:
                lose(cut_short(each.at, each.end - 1, latest[each.at]), self._options)
        return [
            each
            if each.files
            else replace(each, start=max(each.start, earliest[each.at]), end=min(each.end, latest[each.at]))
            for each in ranges
        ]


class FilteringBatchReader(BatchReader):
    """A reader with filter push-down. Spark refuses it if push-down is disabled."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        self._wanted = wanted_by(filters)
        return filters
