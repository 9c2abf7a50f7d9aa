"""Encoding columns into batches: every offset in a column is validated before use."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest

from .making import MAX_INT32, fields, is_released

if TYPE_CHECKING:
    from fuzz.forms import Form


def ints(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}i", *numbers)


def longs(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}q", *numbers)


def column(form: Form, *values: bytes | None) -> Any:
    """A column of these values, in the layout that Arrow describes."""
    starts = [0]
    for value in values:
        starts.append(starts[-1] + len(value or b""))
    bits = sum(1 << row for row, value in enumerate(values) if value is not None)
    buffers = bits.to_bytes(len(values) // 8 + 1, "little"), ints(*starts), b"".join(v or b"" for v in values)
    return form.encode_columns.ColumnSource(buffers, 0, len(values))


def appended(form: Form, *args: Any) -> list[tuple[Any, ...]]:
    builder = form.encode.BatchBuilder()
    assert form.encode_columns.append_columns(builder, *args) == args[-1]
    return [fields(each)[1:2] + fields(each)[3:] for each in form.reader.RecordReader(builder.build())]


def test_rows_become_records(form: Form) -> None:
    keys, values = column(form, b"k", None, b""), column(form, None, b"vv", b"vvv")

    assert appended(form, longs(5, 4, 9), keys, values, None, 0, 3) == [
        (5, b"k", None, ()),
        (4, None, b"vv", ()),
        (9, b"", b"vvv", ()),
    ]


def test_appending_continues_where_the_last_batch_was_full(form: Form) -> None:
    keys = values = column(form, *[b"1234567890"] * 10)
    done = 0
    counts = []
    while done < 10:
        builder = form.encode.BatchBuilder(max_bytes=61 + 3 * 28)
        done = form.encode_columns.append_columns(builder, longs(*range(10)), keys, values, None, done, 10)
        counts.append(form.batch.check_produced(builder.build()).record_count)

    assert counts == [3, 3, 3, 1]


def test_a_column_may_start_anywhere_in_its_buffers(form: Form) -> None:
    buffers = b"\x0d", ints(0, 1, 1, 3, 6), b"abbccc"
    for first in range(4):
        values = form.encode_columns.ColumnSource(buffers, first, 4 - first)
        found = [row[2] for row in appended(form, longs(*range(4)), values, values, None, 0, 4 - first)]
        assert found == [b"a", None, b"bb", b"ccc"][first:]


def test_a_column_without_rows_needs_no_buffers(form: Form) -> None:
    empty = form.encode_columns.ColumnSource((None, None, None), 0, 0)
    builder = form.encode.BatchBuilder()

    assert form.encode_columns.append_columns(builder, b"", empty, empty, None, 0, 0) == 0
    assert builder.count == 0


@pytest.mark.parametrize(
    ("buffers", "first", "rows"),
    [
        ((None, ints(0, 1), b"a"), 0, 2),
        ((None, ints(0), b"a"), 0, 1),
        ((None, None, b"a"), 0, 1),
        ((None, ints(0, 1), b"a"), 1, 1),
        ((None, ints(0, 1), b"a"), -1, 1),
        ((None, ints(0, 1), b"a"), 0, -1),
        ((None, ints(0, 1), b"a"), 1 << 62, 1),
        ((None, ints(0, 1), b"a"), 1, 1 << 62),
        ((None, ints(0, 1), b"a"), 1 << 70, 1 << 70),
        ((b"", ints(0, 1), b"a"), 0, 1),
        ((b"\xff", ints(*range(10)), b"123456789"), 0, 9),
        ((b"\xff", ints(*range(10)), b"123456789"), 1, 8),
    ],
)
def test_buffers_are_as_long_as_their_rows(form: Form, buffers: Any, first: int, rows: int) -> None:
    with pytest.raises(ValueError, match="a column"):
        form.encode_columns.ColumnSource(buffers, first, rows)


@pytest.mark.parametrize(
    "starts", [(0, 5), (-1, 0), (-2, -1), (4, 2), (2, 100), (0, MAX_INT32), (MAX_INT32, MAX_INT32), (-(1 << 31), 0)]
)
def test_rows_stay_within_their_data(form: Form, starts: tuple[int, int]) -> None:
    bad = form.encode_columns.ColumnSource((None, ints(*starts), b"1234"), 0, 1)
    good = column(form, b"v")

    for keys, values in ((bad, good), (good, bad)):
        builder = form.encode.BatchBuilder()
        with pytest.raises(ValueError, match="exceed"):
            form.encode_columns.append_columns(builder, longs(1), keys, values, None, 0, 1)
        assert builder.count == 0


def test_the_offsets_of_a_null_row_are_ignored(form: Form) -> None:
    nulls = form.encode_columns.ColumnSource((b"\x00", ints(-5, MAX_INT32), None), 0, 1)

    assert appended(form, longs(1), nulls, nulls, None, 0, 1) == [(1, None, None, ())]


@pytest.mark.parametrize(("first", "rows"), [(-1, 1), (0, 3), (2, 1), (0, 1 << 62), (-(1 << 70), 1), (0, 1 << 70)])
def test_only_rows_that_every_column_has_are_appended(form: Form, first: int, rows: int) -> None:
    two = column(form, b"a", b"b")
    three = column(form, b"a", b"b", b"c")
    for columns in ((longs(1, 2), three, three), (longs(1, 2, 3), two, three), (longs(1, 2, 3), three, two)):
        builder = form.encode.BatchBuilder()
        with pytest.raises(ValueError, match="out of range"):
            form.encode_columns.append_columns(builder, *columns, None, first, rows)
        assert builder.count == 0


def test_a_truncated_timestamp_is_not_read(form: Form) -> None:
    one = column(form, b"a")

    with pytest.raises(ValueError, match="out of range"):
        form.encode_columns.append_columns(form.encode.BatchBuilder(), longs(1)[:7], one, one, None, 0, 1)


def header_source(form: Form, starts: bytes, rows: int, validity: bytes | None = None, first: int = 0) -> Any:
    names, values = column(form, b"a", "é".encode(), b"c"), column(form, b"1", None, b"")
    return form.encode_columns.HeaderSource((validity, starts), names, values, first, rows)


def test_headers_are_lists_of_names_and_values(form: Form) -> None:
    three = column(form, b"x", b"y", b"z")
    headers = header_source(form, ints(0, 2, 2, 3), 3)

    found = [row[3] for row in appended(form, longs(1, 2, 3), three, three, headers, 0, 3)]

    assert found == [(("a", b"1"), ("é", None)), (), (("c", b""),)]


def test_a_null_list_has_no_headers_whatever_its_offsets(form: Form) -> None:
    two = column(form, b"x", b"y")
    headers = header_source(form, ints(0, 2, 3), 2, validity=b"\x02")

    assert [row[3] for row in appended(form, longs(1, 2), two, two, headers, 0, 2)] == [(), (("c", b""),)]


@pytest.mark.parametrize("starts", [(0, 4), (-1, 1), (3, 2), (0, MAX_INT32), (MAX_INT32, MAX_INT32), (-5, -4)])
def test_lists_of_headers_stay_within_them(form: Form, starts: tuple[int, int]) -> None:
    one = column(form, b"x")
    headers = header_source(form, ints(*starts), 1)

    with pytest.raises(ValueError, match="exceed its headers"):
        appended(form, longs(1), one, one, headers, 0, 1)


def test_there_are_headers_for_every_row_or_for_none(form: Form) -> None:
    two = column(form, b"x", b"y")

    with pytest.raises(ValueError, match="fewer headers than 2 rows"):
        appended(form, longs(1, 2), two, two, header_source(form, ints(0, 1), 1), 0, 2)
    for first, rows in ((0, 2), (1, 1), (-1, 1), (0, -1), (1 << 70, 1)):
        with pytest.raises(ValueError, match="a column"):
            header_source(form, ints(0, 1), rows, first=first)
    with pytest.raises(ValueError, match="validity"):
        header_source(form, ints(0, 1), 1, validity=b"")


def test_names_and_values_of_headers_are_pairs(form: Form) -> None:
    names, values, one = column(form, b"a", b"b"), column(form, b"1"), column(form, b"x")
    headers = form.encode_columns.HeaderSource((None, ints(0, 2)), names, values, 0, 1)

    with pytest.raises(ValueError, match="exceed its headers"):
        appended(form, longs(1), one, one, headers, 0, 1)


@pytest.mark.parametrize(("name", "message"), [(None, "has no name"), (b"\xff", "utf-8")])
def test_a_header_needs_a_name_that_is_text(form: Form, name: bytes | None, message: str) -> None:
    one = column(form, b"x")
    headers = form.encode_columns.HeaderSource((None, ints(0, 1)), column(form, name), one, 0, 1)

    with pytest.raises(ValueError, match=message):
        appended(form, longs(1), one, one, headers, 0, 1)


def test_columns_constructed_directly_have_no_rows(form: Form) -> None:
    encode = form.encode_columns
    empty = encode.ColumnSource.__new__(encode.ColumnSource)
    headers = encode.HeaderSource.__new__(encode.HeaderSource)
    one = column(form, b"x")

    for arguments in ((empty, one, None), (one, empty, None), (one, one, headers)):
        with pytest.raises((ValueError, TypeError)):
            encode.append_columns(form.encode.BatchBuilder(), longs(1), *arguments, 0, 1)
    broken = encode.HeaderSource((None, ints(0, 1)), empty, one, 0, 1)
    with pytest.raises((ValueError, TypeError)):
        encode.append_columns(form.encode.BatchBuilder(), longs(1), one, one, broken, 0, 1)


def test_a_column_reinitialized_with_invalid_buffers_loses_its_rows(form: Form) -> None:
    values = column(form, b"a", b"b")
    with pytest.raises(ValueError, match="a column"):
        values.__init__((None, ints(0), b""), 0, 2)

    with pytest.raises(ValueError, match="out of range"):
        appended(form, longs(1, 2), column(form, b"a", b"b"), values, None, 0, 2)


@pytest.mark.parametrize("wrong", [None, object(), "text"])
def test_an_object_that_is_not_a_column_is_refused(form: Form, wrong: object) -> None:
    one = column(form, b"x")
    append = form.encode_columns.append_columns

    with pytest.raises((TypeError, AttributeError)):
        append(wrong, longs(1), one, one, None, 0, 1)
    with pytest.raises((TypeError, AttributeError)):
        append(form.encode.BatchBuilder(), longs(1), wrong, one, None, 0, 1)
    with pytest.raises((TypeError, AttributeError)):
        append(form.encode.BatchBuilder(), longs(1), one, wrong, None, 0, 1)
    if wrong is not None:
        with pytest.raises((TypeError, AttributeError)):
            append(form.encode.BatchBuilder(), longs(1), one, one, wrong, 0, 1)


def test_a_used_builder_accepts_no_rows(form: Form) -> None:
    one = column(form, b"x")
    builder = form.encode.BatchBuilder()
    builder.append(0, None, None)
    builder.build()

    with pytest.raises(RuntimeError, match="already built"):
        form.encode_columns.append_columns(builder, longs(1), one, one, None, 0, 1)


def test_buffers_are_held_while_the_column_exists(form: Form) -> None:
    data = bytearray(b"abc")
    values = form.encode_columns.ColumnSource((None, ints(0, 3), data), 0, 1)

    assert not is_released(data)
    del values
    assert is_released(data)
