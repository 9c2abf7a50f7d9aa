"""Publishing ranges of a topic, and merging small ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.spark.archive.cover import contents_of
from ottla.spark.archive.errors import ArchiveError
from ottla.spark.archive.merging import due, merged_span
from ottla.spark.archive.names import FileName
from ottla.spark.archive.tables import SCHEMA, by_date, read, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from ottla.spark.archive.cover import Stretch
    from ottla.spark.archive.names import Span
    from ottla.spark.archive.places import ArchiveLock, Place


def publish(
    hold: ArchiveLock, span: Span, rows: Mapping[str, Iterable[pa.RecordBatch]], topic_id: bytes, today: str
) -> None:
    """Write a file per date. They become valid with the last one."""
    dated = dict(rows) or {today: ()}  # offsets without a record, of transactions' markers say, are archived too
    made = []
    for number, (date, batches) in enumerate(sorted(dated.items()), 1):
        name = FileName(date, span, number, len(dated))
        path = hold.scratch / f"{number}.parquet"
        write(path, batches, topic_id)
        made.append((path, name))
    for path, name in made:
        hold.publish(path, str(name))


def check_offsets(batches: Iterable[pa.RecordBatch], span: Span) -> None:
    """Check that the rows are ordered and within the range, as the file name claims."""
    position = span.start
    for batch in batches:
        first, last = (batch.column("offset")[row].as_py() for row in (0, -1))
        if not position <= first <= last < span.end:
            raise ArchiveError(f"offsets {first} to {last} came where {position} to {span.end - 1} were to come")
        position = last + 1


def publish_fetched(hold: ArchiveLock, span: Span, batches: list[pa.RecordBatch], topic_id: bytes, today: str) -> None:
    check_offsets(batches, span)
    publish(hold, span, by_date(batches), topic_id, today)


def remove_leftovers(place: Place) -> None:
    """Invalid files: this module ignores them, but other tools would read them."""
    for name in contents_of(place.sizes()).leftovers:
        place.remove(name)


def merge(place: Place, hold: ArchiveLock, topic_id: bytes, today: str, *, is_thorough: bool = False) -> int:
    """Merge small ranges until none is due; returns the number of replaced ones."""
    replaced = 0
    while True:
        pieces = contents_of(place.sizes()).pieces
        groups = [group for those in pieces.values() for group in due(those, is_thorough=is_thorough)]
        if not groups:
            return replaced
        for group in groups:
            _merge_group(place, hold, group, topic_id, today)
            replaced += len(group)


def _merge_group(place: Place, hold: ArchiveLock, group: list[Stretch], topic_id: bytes, today: str) -> None:
    dates = sorted({file.date for stretch in group for file in stretch.files})
    rows = {date: _rows_of(place, group, date) for date in dates}
    publish(hold, merged_span(group), rows, topic_id, today)
    hold.confirm()
    for stretch in group:
        for file in stretch.files:
            place.remove(str(file))


def _rows_of(place: Place, group: list[Stretch], date: str) -> Iterator[pa.RecordBatch]:
    for stretch in group:
        for file in stretch.files:
            if file.date == date:
                with place.open(str(file)) as opened:
                    for batch in read(opened, stretch.span.start, stretch.span.end, SCHEMA.names):
                        yield batch.cast(SCHEMA)
