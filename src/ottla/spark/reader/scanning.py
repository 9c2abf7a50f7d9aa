"""Direct scan: batch reads of a data folder, from disk and without a broker."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError, CorruptMessage
from ottla.records.arrow import to_arrow
from ottla.records.batches import find_batches
from ottla.spark.errors import aged_out, cut_short
from ottla.spark.kafka_settings import is_committed_only
from ottla.spark.reader.log_files import headers, partitions_in, read_block
from ottla.spark.reader.log_transactions import committed, transactions_in
from ottla.spark.reader.losing import lose
from ottla.spark.reader.offsets import EARLIEST, LATEST
from ottla.spark.reader.ranges import OffsetRange
from ottla.spark.reader.rows import RowMaker

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from ottla.core.ids import TopicPartition
    from ottla.spark.reader.filters import Wanted
    from ottla.spark.reader.log_files import PartitionFiles
    from ottla.spark.reader.log_transactions import Aborted
    from ottla.spark.reader.offsets import Bound
    from ottla.spark.reader.options import SourceOptions

_PIECE_BYTES: Final = 64 << 20
"""The approximate part of a segment that one task reads."""
_UNLIMITED: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class FilePiece:
    """What one task scans: a file from a position on, offsets from `start` to below `end`."""

    at: TopicPartition
    path: str
    position: int
    start: int
    end: int
    aborted: tuple[Aborted, ...] = ()
    """Aborted transactions with records in the piece."""


def plan_scan(options: SourceOptions, wanted: Wanted) -> list[FilePiece]:
    assert options.path is not None  # noqa: S101 - or there is nothing to scan
    files = {each.at: each for each in partitions_in(options.path) if options.selection.takes(each.at)}
    if missing := sorted({*options.selection.topics} - {at.topic for at in files}):
        raise ConfigError(f"no topic {', '.join(missing)} in path {options.path!r}")
    aborted: dict[TopicPartition, tuple[Aborted, ...]] = {}
    if is_committed_only(options.kafka):
        for at, each in files.items():
            found = transactions_in(each)
            files[at], aborted[at] = replace(each, end=found.stable_until), found.aborted
    starts = _resolved(options.starting, files)
    ends = _resolved(options.ending, files)
    pieces: list[FilePiece] = []
    for at, each in files.items():
        whole = _clipped(OffsetRange(at, starts[at], ends[at]), each, options)
        if not wanted.takes(at) or whole.size <= 0:
            continue
        if wanted.from_time_ms is not None:
            whole = replace(whole, start=max(whole.start, _offset_at(each, wanted.from_time_ms)))
        pieces += (_without(piece, aborted.get(at, ())) for piece in _pieces(each, wanted.narrow(whole)))
    return pieces


def _without(piece: FilePiece, aborted: tuple[Aborted, ...]) -> FilePiece:
    here = (each for each in aborted if each.first_offset < piece.end and each.last_offset >= piece.start)
    return replace(piece, aborted=tuple(here))


def _resolved(bound: Bound, files: dict[TopicPartition, PartitionFiles]) -> dict[TopicPartition, int]:
    offsets = {}
    for at, asked in bound.wanted(set(files)).items():
        each = files[at]
        if not bound.is_time:
            offsets[at] = {EARLIEST: each.start, LATEST: each.end}.get(asked, asked)
            continue
        offsets[at] = _offset_at(each, asked)
        if offsets[at] == each.end and not bound.falls_back_to_latest:
            raise ConfigError(
                f"{bound.option}: {at} has no record at or after {asked} ms "
                "(set startingOffsetsByTimestampStrategy to latest to begin at its end)"
            )
    return offsets


def _clipped(whole: OffsetRange, files: PartitionFiles, options: SourceOptions) -> OffsetRange:
    if whole.size > 0 and whole.start < files.start:
        lose(aged_out(whole.at, whole.start, whole.end, files.start), options)
    if whole.size > 0 and whole.end > files.end:
        lose(cut_short(whole.at, whole.end - 1, files.end), options)
    return replace(whole, start=max(whole.start, files.start), end=min(whole.end, files.end))


def _pieces(files: PartitionFiles, whole: OffsetRange) -> Iterator[FilePiece]:
    """The segments with the range; large ones are split where the index has the start of a batch."""
    edges = [*(segment.base_offset for segment in files.segments[1:]), _UNLIMITED]
    for segment, next_base in zip(files.segments, edges, strict=True):
        start, end = max(whole.start, segment.base_offset), min(whole.end, next_base)
        if start >= end:
            continue
        index = segment.index()
        cuts = [cut for cut in _cuts(index) if start < cut[0] < end]
        first = max((entry for entry in index if entry[0] <= start), default=(start, 0))
        points = [(start, first[1]), *cuts]
        for (begin, position), stop in zip(points, [*(cut[0] for cut in cuts), end], strict=True):
            yield FilePiece(files.at, segment.path, position, begin, stop)


def _cuts(index: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Index entries that are far enough apart; the batch at each position ends with the entry's offset."""
    cuts: list[tuple[int, int]] = []
    for last_offset, position in index:
        if position - (cuts[-1][1] if cuts else 0) >= _PIECE_BYTES:
            cuts.append((last_offset, position))
    return cuts


def _offset_at(files: PartitionFiles, time_ms: int) -> int:
    """The first offset with a record at or after this timestamp; the end offset if there is none."""
    import pyarrow.compute as pc  # takes 60 ms, which other queries do not need

    for segment in files.segments:
        for header, position in headers(segment):
            if header.next_offset <= files.start or header.max_timestamp < time_ms:
                continue
            with Path(segment.path).open("rb") as file:
                records = to_arrow(os.pread(file.fileno(), header.size, position), files.start, files.end)
            times = pc.cast(records.column("timestamp"), "int64")
            found = pc.index(pc.greater_equal(times, time_ms), value=True).as_py()
            if found >= 0:
                offset: int = records.column("offset")[found].as_py()
                return offset
    return files.end


def scan_piece(piece: FilePiece, options: SourceOptions, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of one piece; every batch is checked."""
    maker = RowMaker(piece.at, schema)
    position, offset = piece.position, piece.start
    try:
        file = Path(piece.path).open("rb")  # noqa: SIM115 - closed below
    except FileNotFoundError:
        lose(aged_out(piece.at, piece.start, piece.end, piece.end), options)
        return
    with file:
        while offset < piece.end:
            block = read_block(file.fileno(), position)
            begin, end, next_offset = find_batches(block, offset, piece.end, _UNLIMITED)
            if end < 0:
                position += begin
                if begin == 0:
                    break
                continue
            if end == begin:
                break
            yield from maker.rows(_decode(block, begin, end, piece, (position, offset)))
            position, offset = position + end, next_offset


def _decode(block: bytes, begin: int, end: int, piece: FilePiece, where: tuple[int, int]) -> pa.RecordBatch:
    position, offset = where
    try:
        batches = memoryview(block)[begin:end]
        return to_arrow(committed(batches, offset, piece.aborted) if piece.aborted else batches, offset, piece.end)
    except CorruptMessage as broken:
        place = f"{piece.path} near position {position + begin}, offset {offset} of {piece.at}"
        raise CorruptMessage(f"{place}: {broken}") from broken
