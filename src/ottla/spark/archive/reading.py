"""One task's range of offsets, read from the files of an archive."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.archive.cover import contents_of, holes
from ottla.spark.archive.names import Span
from ottla.spark.archive.places import Place, place_of
from ottla.spark.archive.tables import read
from ottla.spark.errors import not_archived
from ottla.spark.reader.losing import lose

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ottla.spark.reader.options import SourceOptions
    from ottla.spark.reader.ranges import OffsetRange
    from ottla.spark.reader.rows import RowMaker

_ATTEMPTS: Final = 10
"""So often files may be merged into others between the look for them and their being opened."""


def archived_rows(wanted: OffsetRange, options: SourceOptions, maker: RowMaker) -> Iterator[pa.RecordBatch]:
    """The rows of this range. Missing records raise DataLoss or are skipped, depending on failOnDataLoss."""
    assert options.archive is not None  # noqa: S101 - otherwise it has no ranges
    place = place_of(options.archive, wanted.at.topic)
    columns = sorted({*maker.names, "offset"})
    with ExitStack() as open_files:
        for file, start, end in _opened(place, wanted, options, open_files):
            for batch in read(file, start, end, columns):
                names = ["timestamp_type" if name == "timestampType" else name for name in batch.schema.names]
                yield from maker.rows(batch.rename_columns(names))


def _opened(
    place: Place, wanted: OffsetRange, options: SourceOptions, open_files: ExitStack
) -> list[tuple[Any, int, int]]:
    """The files that hold the range, all open before the first is read: then they may be removed."""
    span = Span(wanted.at.partition, wanted.start, wanted.end)
    parts = [(name, wanted.start, wanted.end) for name in wanted.files]
    missing: list[Span] = []
    for _ in range(_ATTEMPTS):
        try:
            if parts and not missing:
                return [(open_files.enter_context(place.open(name)), start, end) for name, start, end in parts]
        except FileNotFoundError:
            open_files.close()
        pieces = contents_of(place.sizes()).within(span)
        missing = holes(pieces, span)
        parts = [(str(file), each.start, each.end) for each in pieces for file in each.stretch.files]
    for hole in missing:
        lose(not_archived(wanted.at, hole.start, hole.end), options)
    return [(open_files.enter_context(place.open(name)), start, end) for name, start, end in parts]
