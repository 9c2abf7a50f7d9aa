"""Compatibility with aiokafka's readers and builders, in both directions, for what kio does not cover.

That is compression, timestamps to the millisecond, LogAppendTime and control batches. aiokafka decompresses gzip with
Python's zlib and the others with the same library as Ottla; test_compression.py compares those with Arrow's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.record._crecords.default_records import DefaultRecordBatch as CompiledBatch
from aiokafka.record._crecords.default_records import DefaultRecordBatchBuilder as CompiledBuilder
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy as PythonBuilder
from aiokafka.record.default_records import _DefaultRecordBatchPy as PythonBatch
from hypothesis import given, settings
from hypothesis import strategies as st

from .making import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, fields, headers, sealed, strings

if TYPE_CHECKING:
    from fuzz.forms import Form

rows = st.lists(st.tuples(st.integers(0, 1 << 50), strings, strings, headers), min_size=1, max_size=10)
codecs = pytest.mark.parametrize("codec", range(5), ids=["none", "gzip", "snappy", "lz4", "zstd"])


def theirs(record: Any) -> tuple[Any, ...]:
    return record.offset, record.timestamp, bool(record.timestamp_type), record.key, record.value, tuple(record.headers)


@codecs
@settings(max_examples=25)
@pytest.mark.parametrize("batch", [PythonBatch, CompiledBatch])
@given(
    rows=rows,
    attributes=st.sampled_from([0, LOG_APPEND_TIME, CONTROL, TRANSACTIONAL, LOG_APPEND_TIME | TRANSACTIONAL]),
    base_offset=st.integers(0, 1 << 60),
    producer_id=st.integers(-1, 1 << 60),
)
def test_aiokafka_reads_our_batches(
    form: Form, batch: Any, codec: int, rows: list[Any], attributes: int, base_offset: int, producer_id: int
) -> None:
    builder = form.encode.BatchBuilder(codec)
    for row in rows:
        assert builder.append(*row)
    data = builder.build(
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=3,
        base_sequence=5,
        is_transactional=bool(attributes & TRANSACTIONAL),
        is_control=bool(attributes & CONTROL),
    )
    if attributes & LOG_APPEND_TIME:
        form.batch.set_log_append_time(data, 123_456)

    found = batch(bytes(data))

    assert found.validate_crc()
    assert (found.base_offset, found.producer_id, found.producer_epoch) == (base_offset, producer_id, 3)
    assert (found.compression_type, found.is_control_batch) == (codec, bool(attributes & CONTROL))
    assert found.is_transactional == bool(attributes & TRANSACTIONAL)
    expected = [fields(each) for each in form.reader.RecordReader(data, with_control=True)]
    assert [theirs(each) for each in found] == expected
    assert [each[4] for each in expected] == [row[2] for row in rows]


@codecs
@settings(max_examples=25)
@pytest.mark.parametrize("builder", [PythonBuilder, CompiledBuilder])
@given(rows=rows, is_stamped=st.booleans())
def test_we_read_aiokafkas_batches(form: Form, builder: Any, codec: int, rows: list[Any], is_stamped: bool) -> None:
    theirs_ = builder(2, codec, 0, -1, -1, -1, 1 << 20)
    for number, (timestamp, key, value, pairs) in enumerate(rows):
        assert theirs_.append(number, timestamp, key, value, pairs)
    data = bytearray(theirs_.build())
    if is_stamped:
        data[22] |= LOG_APPEND_TIME
        sealed(data)

    last = max(row[0] for row in rows)
    assert [fields(each) for each in form.reader.RecordReader(data)] == [
        (number, last if is_stamped else timestamp, is_stamped, key, value, tuple(pairs))
        for number, (timestamp, key, value, pairs) in enumerate(rows)
    ]
    form.arrow.to_arrow(data).validate(full=True)


@given(rows=rows)
def test_aiokafka_writes_the_same_bytes_as_we_do(form: Form, rows: list[Any]) -> None:
    builder = form.encode.BatchBuilder()
    theirs_ = PythonBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for number, row in enumerate(rows):
        builder.append(*row)
        theirs_.append(number, *row)

    assert builder.build() == theirs_.build()
