"""Compatibility with kio, an independent implementation, in both directions.

kio covers uncompressed batches with producer timestamps, of which its reader keeps whole seconds only; the rest is
compared with aiokafka in test_against_aiokafka.py.
"""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch
from kio.records.schema import NewRecordBatch, Record, RecordHeader
from kio.records.writers import write_new_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from .making import TRANSACTIONAL, fields, headers, strings

if TYPE_CHECKING:
    from fuzz.forms import Form

HIGHEST_SECOND = 4_102_444_800  # the year 2100

rows = st.lists(
    st.tuples(st.integers(0, HIGHEST_SECOND).map(lambda s: s * 1000), strings, strings, headers),
    min_size=1,
    max_size=10,
)
producers = st.fixed_dictionaries(
    {
        "producer_id": st.integers(-1, (1 << 63) - 1),
        "producer_epoch": st.integers(-1, (1 << 15) - 1),
        "base_sequence": st.integers(-1, (1 << 31) - 1),
        "leader_epoch": st.integers(-1, (1 << 31) - 1),
    }
)


def moment(milliseconds: int) -> TZAwareMicros:
    return TZAwareMicros.parse(datetime.fromtimestamp(milliseconds // 1000, UTC))


@given(rows=rows, fields=producers, base_offset=st.integers(0, 1 << 60), is_transactional=st.booleans())
def test_kio_reads_our_batches(
    form: Form, rows: list[Any], fields: dict[str, int], base_offset: int, is_transactional: bool
) -> None:
    builder = form.encode.BatchBuilder()
    for row in rows:
        assert builder.append(*row)

    data = bytes(builder.build(base_offset=base_offset, is_transactional=is_transactional, **fields))
    found, size = read_batch(data, 0)

    assert size == len(data)
    assert (found.base_offset, found.batch_length) == (base_offset, len(data) - 12)
    assert found.attributes == (TRANSACTIONAL if is_transactional else 0)
    assert found.last_offset_delta == len(rows) - 1
    assert (found.base_timestamp, found.max_timestamp) == (rows[0][0], max(row[0] for row in rows))
    assert (found.producer_id, found.producer_epoch) == (fields["producer_id"], fields["producer_epoch"])
    assert (found.base_sequence, found.partition_leader_epoch) == (fields["base_sequence"], fields["leader_epoch"])
    for number, (each, (timestamp, key, value, pairs)) in enumerate(zip(found.records, rows, strict=True)):
        assert (each.attributes, each.offset) == (0, base_offset + number)
        assert (each.timestamp, each.key, each.value) == (moment(timestamp), key, value)
        assert each.headers == tuple(RecordHeader(key=name.encode(), value=content) for name, content in pairs)


@given(
    rows=rows,
    producer=producers,
    deltas=st.lists(st.integers(1, 1000), min_size=10, max_size=10),
    base_offset=st.integers(0, 1 << 60),
)
def test_we_read_kios_batches(
    form: Form, rows: list[Any], producer: dict[str, int], deltas: list[int], base_offset: int
) -> None:
    offsets = [base_offset + sum(deltas[:number]) for number in range(len(rows))]
    records = tuple(
        Record(
            attributes=i8(0),
            timestamp=moment(timestamp),
            offset=i64(offset),
            key=key,
            value=value,
            headers=tuple(RecordHeader(key=name.encode(), value=content) for name, content in pairs),
        )
        for offset, (timestamp, key, value, pairs) in zip(offsets, rows, strict=True)
    )
    buffer = io.BytesIO()
    write_new_batch(
        buffer,
        NewRecordBatch(
            producer_id=i64(producer["producer_id"]),
            producer_epoch=i16(producer["producer_epoch"]),
            partition_leader_epoch=i32(producer["leader_epoch"]),
            base_sequence=i32(producer["base_sequence"]),
            attributes=i16(0),
            records=records,
        ),
    )
    data = buffer.getvalue()

    header = form.batch.check_batch(data)
    assert (header.base_offset, header.last_offset, header.record_count) == (offsets[0], offsets[-1], len(rows))
    assert (header.producer_id, header.producer_epoch) == (producer["producer_id"], producer["producer_epoch"])
    assert (header.base_sequence, header.leader_epoch) == (producer["base_sequence"], producer["leader_epoch"])
    assert (header.base_timestamp, header.max_timestamp) == (rows[0][0], max(row[0] for row in rows))
    expected = [
        (offset, timestamp, False, key, value, tuple(pairs))
        for offset, (timestamp, key, value, pairs) in zip(offsets, rows, strict=True)
    ]
    assert [fields(each) for each in form.reader.RecordReader(data)] == expected
    table = form.arrow.to_arrow(data)
    table.validate(full=True)
    assert table["offset"].to_pylist() == offsets
    assert table["key"].to_pylist() == [row[1] for row in rows]
    assert table["value"].to_pylist() == [row[2] for row in rows]


@given(rows=rows)
def test_kio_writes_the_same_bytes_as_we_do(form: Form, rows: list[Any]) -> None:
    builder = form.encode.BatchBuilder()
    for row in rows:
        builder.append(*row)
    ours = bytes(builder.build(leader_epoch=0))
    found, _ = read_batch(ours, 0)
    buffer = io.BytesIO()
    write_new_batch(
        buffer,
        NewRecordBatch(
            producer_id=i64(-1), producer_epoch=i16(-1), base_sequence=i32(-1), attributes=i16(0), records=found.records
        ),
    )

    assert buffer.getvalue() == ours
