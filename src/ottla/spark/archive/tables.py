"""Records as Parquet files, and back. The columns are those of Spark's Kafka connector."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ottla.spark.archive.names import DAY_MS, date_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_HEADER: Final = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
        pa.field("headers", pa.list_(pa.field("element", _HEADER, nullable=False)), nullable=False),
    ]
)
TOPIC_ID: Final = b"ottla.topic_id"
_GROUP_ROWS: Final = 128 * 1024
_GROUP_BYTES: Final = 32 << 20
_OPTIONS: Final[dict[str, Any]] = {
    "compression": "zstd",
    "use_dictionary": ["topic", "partition", "timestampType", "key"],
    "column_encoding": {"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
    # Not of keys and values, which would be whole ones.
    "write_statistics": ["topic", "partition", "offset", "timestamp", "timestampType"],
    "sorting_columns": [pq.SortingColumn(SCHEMA.get_field_index("offset"))],
}


def archived_rows(fetched: pa.RecordBatch) -> pa.RecordBatch:
    """What the client fetched, in the columns of an archive."""
    columns = [fetched.column("timestamp_type" if name == "timestampType" else name) for name in SCHEMA.names]
    cast = [
        column if column.type == kind else column.cast(kind) for column, kind in zip(columns, SCHEMA.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(cast, schema=SCHEMA)


def by_date(batches: Iterable[pa.RecordBatch]) -> dict[str, list[pa.RecordBatch]]:
    """The rows of each day, in their order."""
    found: dict[str, list[pa.RecordBatch]] = defaultdict(list)
    for batch in batches:
        times_ms = batch.column("timestamp").cast(pa.int64())
        low, high = (edge.as_py() // DAY_MS for edge in pc.min_max(times_ms).values())
        if low == high:
            found[date_of(low)].append(batch)
            continue
        days = _days(times_ms)
        together: dict[str, list[int]] = defaultdict(list)
        for day in pc.unique(days).to_pylist():
            together[date_of(day)].append(day)
        for date, those in together.items():
            found[date].append(batch.filter(pc.is_in(days, pa.array(those, pa.int64()))))
    return dict(found)


def _days(times_ms: pa.Array) -> pa.Array:
    """Days since 1970. Arrow divides towards zero, and times before 1970 are to be rounded down."""
    days = pc.divide(times_ms, DAY_MS)
    return pc.subtract(days, pc.less(times_ms, pc.multiply(days, DAY_MS)).cast(pa.int64()))


def write(path: Path, batches: Iterable[pa.RecordBatch], topic_id: bytes) -> None:
    """A file of these rows, in large groups."""
    with pq.ParquetWriter(path, SCHEMA.with_metadata({TOPIC_ID: topic_id.hex().encode()}), **_OPTIONS) as writer:
        for table in _grouped(batches):
            writer.write_table(table, row_group_size=_GROUP_ROWS)


def _grouped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield pa.Table.from_batches(waiting, SCHEMA)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting, SCHEMA)


def topic_id_of(file: object) -> bytes:
    """The topic id of the records."""
    metadata = pq.read_schema(file).metadata or {}
    return bytes.fromhex(metadata.get(TOPIC_ID, b"").decode())


def read(file: object, start: int, end: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows from one offset to below another; of the row groups only those that hold some are read."""
    parquet = pq.ParquetFile(file)
    wanted = []
    for number in range(parquet.num_row_groups):
        low, high = _offset_bounds(parquet, number)
        if low < end and high >= start:
            wanted.append(number)
    if not wanted:
        return
    for batch in parquet.iter_batches(row_groups=wanted, columns=columns):
        offsets = batch.column("offset")
        if offsets[0].as_py() >= start and offsets[-1].as_py() < end:
            yield batch
        else:
            yield batch.filter(pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end)))


def first_offset_since(file: object, time_ms: int, start: int) -> int | None:
    """The first offset, from `start` on, with a timestamp not older than this."""
    parquet = pq.ParquetFile(file)
    column = SCHEMA.get_field_index("timestamp")
    for number in range(parquet.num_row_groups):
        # Raw, because Python has no dates for the largest of them.
        if parquet.metadata.row_group(number).column(column).statistics.max_raw < time_ms:
            continue
        rows = parquet.read_row_group(number, columns=["offset", "timestamp"])
        is_new = pc.greater_equal(rows.column("timestamp").cast(pa.int64()), time_ms)
        offsets = rows.filter(pc.and_(is_new, pc.greater_equal(rows.column("offset"), start))).column("offset")
        if len(offsets):
            found: int = offsets[0].as_py()
            return found
    return None


def _offset_bounds(parquet: pq.ParquetFile, number: int) -> tuple[int, int]:
    statistics = parquet.metadata.row_group(number).column(SCHEMA.get_field_index("offset")).statistics
    return statistics.min, statistics.max
