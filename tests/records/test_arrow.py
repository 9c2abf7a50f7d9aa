"""Batches as Arrow record batches and back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.core.errors import CorruptMessage

from .making import CONTROL, LOG_APPEND_TIME, NONE, ZSTD, batch, built, fields, headers, record, strings

if TYPE_CHECKING:
    from fuzz.forms import Form

HEADER = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
NOW = 1_700_000_000_000

rows = st.lists(st.tuples(st.integers(-(1 << 40), 1 << 40), strings, strings, headers), min_size=1, max_size=12)


def encoded(form: Form, table: pa.RecordBatch, **options: Any) -> list[tuple[Any, ...]]:
    """Timestamp, key, value and headers of every record built from these rows."""
    batches = form.arrow.from_arrow(table, now_ms=NOW, **options)
    return [fields(each)[1:2] + fields(each)[3:] for data in batches for each in form.reader.RecordReader(data)]


def values(form: Form, array: pa.Array) -> list[bytes | None]:
    return [row[2] for row in encoded(form, pa.record_batch({"value": array}))]


@settings(max_examples=40)
@pytest.mark.parametrize("codec", range(5))
@given(rows=rows)
def test_records_round_trip_through_arrow(form: Form, codec: int, rows: list[Any]) -> None:
    table = form.arrow.to_arrow(built(form, rows, codec))

    table.validate(full=True)
    assert table.num_rows == len(rows)
    assert encoded(form, table, compression=codec) == [
        (timestamp, key, value, tuple(pairs)) for timestamp, key, value, pairs in rows
    ]


@given(rows=rows, start=st.integers(0, 12), length=st.integers(0, 12))
def test_slices_keep_their_rows(form: Form, rows: list[Any], start: int, length: int) -> None:
    table = form.arrow.to_arrow(built(form, rows)).slice(min(start, len(rows)), length)

    assert encoded(form, table) == [
        (timestamp, key, value, tuple(pairs)) for timestamp, key, value, pairs in rows[start : start + length]
    ]


def test_the_columns_match_the_schema(form: Form) -> None:
    payload = record(0, 5, b"k", None, [(b"h", b"1"), ("é".encode(), None)]) + record(3, -5, None, b"")
    data = batch(payload, 2, base_offset=10, last_offset_delta=3, base_timestamp=1000)
    data += batch(record(), base_offset=20, max_timestamp=77, attributes=LOG_APPEND_TIME)

    table = form.arrow.to_arrow(data)

    table.validate(full=True)
    assert table.schema == form.arrow.SCHEMA
    assert table.to_pylist() == [
        {
            "offset": 10,
            "timestamp": datetime(1970, 1, 1, 0, 0, 1, 5000, UTC),
            "timestamp_type": 0,
            "key": b"k",
            "value": None,
            "headers": [{"key": "h", "value": b"1"}, {"key": "é", "value": None}],
        },
        {
            "offset": 13,
            "timestamp": datetime(1970, 1, 1, 0, 0, 0, 995000, UTC),
            "timestamp_type": 0,
            "key": None,
            "value": b"",
            "headers": [],
        },
        {
            "offset": 20,
            "timestamp": datetime(1970, 1, 1, 0, 0, 0, 77000, UTC),
            "timestamp_type": 1,
            "key": b"k",
            "value": b"v",
            "headers": [],
        },
    ]


def test_a_range_of_offsets_is_selected(form: Form) -> None:
    data = batch(b"".join(map(record, range(5))), 5) + batch(b"".join(map(record, range(5))), 5, base_offset=5)

    for first in range(12):
        for limit in range(first, 12):
            table = form.arrow.to_arrow(data, first, limit)
            table.validate(full=True)
            assert table["offset"].to_pylist() == list(range(first, min(limit, 10)))


def test_empty_input_gives_no_rows_and_no_rows_give_no_batches(form: Form) -> None:
    empty = form.arrow.to_arrow(b"")

    empty.validate(full=True)
    assert empty.num_rows == 0
    assert list(form.arrow.from_arrow(empty)) == []
    assert list(form.arrow.from_arrow(pa.record_batch({"value": pa.array([], pa.binary())}))) == []


def test_control_batches_are_not_rows(form: Form) -> None:
    assert form.arrow.to_arrow(batch() + batch(base_offset=1, attributes=CONTROL))["offset"].to_pylist() == [0]


def test_a_corrupt_batch_raises_an_error(form: Form) -> None:
    data = batch()
    data[-1] ^= 1

    with pytest.raises(CorruptMessage):
        form.arrow.to_arrow(data)


def test_the_decompressed_size_of_all_batches_is_limited(form: Form) -> None:
    data = bytearray()
    for base_offset in range(4):
        one = built(form, [(0, None, bytes(1000), [])], ZSTD)
        form.batch.place(one, 0, base_offset, 0)
        data += one

    assert form.arrow.to_arrow(data, max_decompressed_bytes=4040).num_rows == 4
    with pytest.raises(CorruptMessage, match="more than"):
        form.arrow.to_arrow(data, max_decompressed_bytes=4000)
    assert form.arrow.to_arrow(data, 0, 3, max_decompressed_bytes=4000).num_rows == 3


def test_a_table_outlives_the_batches(form: Form) -> None:
    data = built(form, [(0, b"kept", b"too", [("h", b"1")])])
    table = form.arrow.to_arrow(data)
    data[:] = bytes(len(data))

    assert table["key"].to_pylist() == [b"kept"]
    data.append(0)


def test_only_the_value_column_is_required(form: Form) -> None:
    table = pa.record_batch({"value": pa.array([b"a", None])})

    assert encoded(form, table) == [(NOW, None, b"a", ()), (NOW, None, None, ())]
    with pytest.raises(ValueError, match="no column 'value' in \\['key'\\]"):
        list(form.arrow.from_arrow(pa.record_batch({"key": pa.array([b"a"])})))


def test_the_default_timestamp_is_the_current_time(form: Form) -> None:
    [data] = form.arrow.from_arrow(pa.record_batch({"value": pa.array([b"a"])}))

    assert form.batch.read_header(data).base_timestamp > NOW


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.string_view(), pa.binary_view()],
    ids=str,
)
def test_values_may_have_any_binary_type(form: Form, kind: pa.DataType) -> None:
    given = [b"one", None, b"", "ß".encode()]
    array = pa.array(given, pa.binary()).cast(kind)

    assert values(form, array) == given
    assert values(form, array.slice(1)) == given[1:]


def test_values_may_be_dictionaries_fixed_size_or_null_arrays(form: Form) -> None:
    assert values(form, pa.array(["a", None, "a"]).dictionary_encode()) == [b"a", None, b"a"]
    assert values(form, pa.array([b"ab", None], pa.binary(2))) == [b"ab", None]
    assert values(form, pa.nulls(2)) == [None, None]


def test_a_type_that_is_not_bytes_is_refused(form: Form) -> None:
    with pytest.raises(pa.ArrowNotImplementedError, match="int64"):
        values(form, pa.array([1, 2]))


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([5, None, -3], pa.int64()), [5, NOW, -3]),
        (pa.array([5, None, -3], pa.int32()), [5, NOW, -3]),
        (pa.array([1_999_999, None, 0], pa.timestamp("ns", "UTC")), [1, NOW, 0]),
        (pa.array([1500, None, 0], pa.timestamp("us")), [1, NOW, 0]),
        (pa.array([2, None, -1], pa.timestamp("s", "Europe/Prague")), [2000, NOW, -1000]),
        (pa.nulls(3), [NOW, NOW, NOW]),
    ],
    ids=lambda each: str(each.type) if isinstance(each, pa.Array) else "",
)
def test_timestamps_may_have_any_unit_and_null_means_now(form: Form, array: pa.Array, expected: list[int]) -> None:
    data = pa.array([b"a", b"b", b"c"])
    table = pa.record_batch({"value": data, "timestamp": array})

    assert [row[0] for row in encoded(form, table)] == expected
    assert [row[0] for row in encoded(form, table.slice(1))] == expected[1:]


def test_a_timestamp_out_of_range_is_refused(form: Form) -> None:
    table = pa.record_batch({"value": pa.array([b"a"]), "timestamp": pa.array([1 << 60], pa.timestamp("s"))})

    with pytest.raises(pa.ArrowInvalid):
        encoded(form, table)


def pairs(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    return pa.struct([("key", key), ("value", value)])


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(HEADER),
        pa.large_list(HEADER),
        pa.list_(pairs(pa.string(), pa.string())),
        pa.list_(pairs(pa.large_string(), pa.large_binary())),
        pa.list_(pairs(pa.binary(), pa.binary())),
        pa.list_(pa.struct([("value", pa.binary()), ("key", pa.string())])),
    ],
    ids=str,
)
def test_headers_are_lists_of_pairs_of_any_width(form: Form, kind: pa.DataType) -> None:
    given: list[Any] = [
        [{"key": "a", "value": "1"}, {"key": "b", "value": None}],
        [],
        None,
        [{"key": "c", "value": ""}],
    ]
    array = pa.array(given, pa.list_(pairs(pa.string(), pa.string()))).cast(kind)
    table = pa.record_batch({"value": pa.nulls(4), "headers": array})

    expected: list[Any] = [(("a", b"1"), ("b", None)), (), (), (("c", b""),)]
    assert [row[3] for row in encoded(form, table)] == expected
    assert [row[3] for row in encoded(form, table.slice(1, 3))] == expected[1:]


def test_a_map_is_a_list_of_headers(form: Form) -> None:
    array = pa.array([[("a", b"1")], []], pa.map_(pa.string(), pa.binary()))

    assert [row[3] for row in encoded(form, pa.record_batch({"value": pa.nulls(2), "headers": array}))] == [
        (("a", b"1"),),
        (),
    ]


@pytest.mark.parametrize("header", [None, {"key": None, "value": b""}])
def test_a_header_is_not_null_and_neither_is_its_name(form: Form, header: Any) -> None:
    array = pa.array([[header]], pa.list_(pairs(pa.string(), pa.binary())))

    with pytest.raises(ValueError, match="null"):
        encoded(form, pa.record_batch({"value": pa.nulls(1), "headers": array}))


def test_a_name_that_is_not_text_is_refused(form: Form) -> None:
    array = pa.array([[{"key": b"\xff", "value": b""}]], pa.list_(pairs(pa.binary(), pa.binary())))

    with pytest.raises(ValueError, match=r"UTF8|utf-8"):
        encoded(form, pa.record_batch({"value": pa.nulls(1), "headers": array}))


@pytest.mark.parametrize("codec", [NONE, ZSTD])
def test_rows_are_split_into_batches_of_a_size(form: Form, codec: int) -> None:
    table = pa.record_batch({"value": pa.array([b"v" * 50] * 20)})

    batches = list(form.arrow.from_arrow(table, compression=codec, max_batch_bytes=61 + 3 * 60, now_ms=NOW))

    counts = [form.batch.check_produced(each).record_count for each in batches]
    assert counts == [3] * 6 + [2]
    assert codec or max(map(len, batches)) <= 61 + 3 * 60


def test_a_row_larger_than_a_batch_gets_its_own_batch(form: Form) -> None:
    table = pa.record_batch({"value": pa.array([b"a", b"b" * 500, b"c"])})

    batches = list(form.arrow.from_arrow(table, max_batch_bytes=100))

    assert [form.batch.check_produced(each).record_count for each in batches] == [1, 1, 1]


def test_unaligned_buffers_are_read(form: Form) -> None:
    table = pa.record_batch({"value": pa.array([b"one", b"three"]), "timestamp": pa.array([7, 8])})
    crooked = [
        [None if buffer is None else pa.py_buffer(b"x" + buffer.to_pybytes()).slice(1) for buffer in column.buffers()]
        for column in table.columns
    ]
    arrays = [pa.Array.from_buffers(c.type, 2, b) for c, b in zip(table.columns, crooked, strict=True)]

    assert encoded(form, pa.record_batch(arrays, names=table.schema.names)) == [
        (7, None, b"one", ()),
        (8, None, b"three", ()),
    ]


def test_rows_are_partitioned_by_their_keys(form: Form) -> None:
    rows = pa.record_batch({"key": pa.array([b"foobar", None, b"", b"abc"], pa.binary())}).slice(0, 3)

    chosen = form.arrow.key_partitions(rows, 5)

    assert chosen.to_pylist() == [form.murmur2.partition_of(b"foobar", 5), -1, form.murmur2.partition_of(b"", 5)]


def test_rows_without_a_key_column_have_no_partition(form: Form) -> None:
    assert form.arrow.key_partitions(pa.record_batch({"value": [b"v"]}), 5).to_pylist() == [-1]


def test_zero_partitions_are_refused(form: Form) -> None:
    with pytest.raises(ValueError, match="the number of partitions must be positive, got 0"):
        form.arrow.key_partitions(pa.record_batch({"value": [b"v"]}), 0)
