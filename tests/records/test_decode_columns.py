"""Decoding batches into columns, in any memory, including hostile allocators."""

from __future__ import annotations

import gc
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from fuzz.targets import Targets

from ottla.core.errors import CorruptMessage

from .making import (
    CONTROL,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    MAX_INT64,
    NONE,
    SNAPPY,
    ZSTD,
    batch,
    built,
    is_released,
    record,
)

if TYPE_CHECKING:
    from fuzz.forms import Form

MANY = [
    (i * 7, b"key-%d" % i if i % 3 else None, b"v" * i if i % 5 else None, [("h", b"x")] * (i % 4)) for i in range(40)
]


def rows(form: Form, data: bytes | bytearray) -> Any:
    """The contents of the columns, compared with the reader by the fuzzing code."""
    return Targets([form]).columns(b"\x01" + bytes(data))


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4, ZSTD])
def test_columns_equal_the_readers_records(form: Form, codec: int) -> None:
    kind, found = rows(form, built(form, MANY, codec))

    assert kind == "came out"
    assert [(row[1], row[3], row[4], list(row[5])) for row in found] == [tuple(row) for row in MANY]


def test_validity_bitmaps_exist_only_if_something_is_null(form: Form) -> None:
    columns = form.decode_columns.decode_columns(batch(record(0, key=None) + record(1), 2))

    validity, starts, data = columns.keys.buffers
    assert (columns.keys.count, columns.keys.null_count) == (2, 1)
    assert validity[0] & 0b11 == 0b10
    assert struct.unpack("=3i", starts[:12]) == (0, 0, 1)
    assert bytes(data) == b"k"
    assert columns.values.buffers[0] is None
    assert columns.values.null_count == 0


def test_the_last_validity_bit_is_correct(form: Form) -> None:
    for count in (7, 8, 9, 15, 16, 17):
        payload = b"".join(record(i, value=None if i == count - 1 else b"v") for i in range(count))
        validity = form.decode_columns.decode_columns(batch(payload, count)).values.buffers[0]
        assert [validity[i >> 3] >> (i & 7) & 1 for i in range(count)] == [1] * (count - 1) + [0]


def test_fixed_columns_have_native_byte_order(form: Form) -> None:
    data = batch(record(0, 5) + record(1, -5), 2, base_offset=7, base_timestamp=100)
    data += batch(base_offset=9, max_timestamp=MAX_INT64, attributes=LOG_APPEND_TIME)

    columns = form.decode_columns.decode_columns(data)

    assert columns.count == 3
    assert struct.unpack("=3q", columns.offsets) == (7, 8, 9)
    assert struct.unpack("=3q", columns.timestamps) == (105, 95, MAX_INT64)
    assert bytes(columns.timestamp_types) == b"\x00\x00\x01"
    assert struct.unpack("=4i", columns.header_starts) == (0, 0, 0, 0)


def test_a_range_of_offsets_is_decoded(form: Form) -> None:
    payload = b"".join(record(i, headers=[(b"n%d" % i, b"")] * i) for i in range(4))
    data = batch(payload, 4) + batch(payload, 4, base_offset=4)

    for first in range(-1, 9):
        for limit in range(first, 10):
            columns = form.decode_columns.decode_columns(data, first, limit)
            expected = list(range(max(first, 0), min(limit, 8)))
            assert columns.count == len(expected)
            assert list(struct.unpack_from(f"={len(expected)}q", columns.offsets)) == expected
            assert columns.header_names.count == sum(offset % 4 for offset in expected)


def test_a_batch_outside_the_range_is_validated_but_not_decompressed(form: Form) -> None:
    sealed_garbage = batch(b"garbage", attributes=ZSTD)

    assert form.decode_columns.decode_columns(sealed_garbage + batch(base_offset=1), 1).count == 1
    assert form.decode_columns.decode_columns(batch() + batch(b"garbage", base_offset=1), 0, 1).count == 1
    sealed_garbage[-1] ^= 1
    with pytest.raises(CorruptMessage):
        form.decode_columns.decode_columns(sealed_garbage + batch(base_offset=1), 1)


def test_control_batches_are_skipped(form: Form) -> None:
    assert form.decode_columns.decode_columns(batch(attributes=CONTROL)).count == 0


@pytest.mark.parametrize(("first", "limit"), [(1 << 63, 0), (0, 1 << 63), (-(1 << 63) - 1, 0)])
def test_offsets_of_more_than_64_bits_are_overflow_errors(form: Form, first: int, limit: int) -> None:
    source = batch()

    with pytest.raises(OverflowError):
        form.decode_columns.decode_columns(source, first, limit)
    assert is_released(source)


def test_what_is_not_bytes_is_refused(form: Form) -> None:
    with pytest.raises(TypeError):
        form.decode_columns.decode_columns("text")


def test_the_limit_applies_to_all_batches_together(form: Form) -> None:
    one = built(form, [(0, None, bytes(1000), [])], ZSTD)
    assert form.decode_columns.decode_columns(one, max_decompressed_bytes=1010).count == 1

    with pytest.raises(CorruptMessage, match="more than"):
        form.decode_columns.decode_columns(one * 2, max_decompressed_bytes=1010)


def test_uncompressed_data_is_limited_only_by_its_size(form: Form) -> None:
    one = built(form, [(0, None, bytes(1000), [])])

    assert form.decode_columns.decode_columns(one * 5, max_decompressed_bytes=0).count == 5


class TestAllocators:
    """A misbehaving allocator causes errors, but never a crash."""

    DATA = batch(record(0, headers=[(b"a", b"1")]) + record(1, key=None, headers=[(b"bc", None)]), 2)

    def test_memory_may_be_larger_than_requested(self, form: Form) -> None:
        columns = form.decode_columns.decode_columns(self.DATA, allocate=lambda size: bytearray(size + 13))

        assert struct.unpack_from("=2q", columns.offsets) == (0, 1)

    def test_memory_need_not_be_aligned(self, form: Form) -> None:
        columns = form.decode_columns.decode_columns(
            self.DATA, allocate=lambda size: memoryview(bytearray(size + 3))[3:]
        )

        assert struct.unpack_from("=2q", columns.offsets) == (0, 1)
        assert struct.unpack_from("=3i", columns.header_starts) == (0, 1, 2)

    def test_memory_must_not_be_smaller_than_requested(self, form: Form) -> None:
        with pytest.raises(ValueError, match="the allocator returned"):
            form.decode_columns.decode_columns(self.DATA, allocate=lambda size: bytearray(max(size - 1, 0)))

    def test_memory_must_be_writable_memory(self, form: Form) -> None:
        with pytest.raises(BufferError):
            form.decode_columns.decode_columns(self.DATA, allocate=bytes)
        with pytest.raises(TypeError):
            form.decode_columns.decode_columns(self.DATA, allocate=lambda _: None)

    def test_an_allocators_own_error_is_passed_on(self, form: Form) -> None:
        source = bytearray(self.DATA)
        for call in range(20):
            left = iter(range(call))

            def allocate(size: int, left: Any = left) -> bytearray:
                if next(left, None) is None:
                    raise MemoryError("no more")
                return bytearray(size)

            with suppress(MemoryError):
                form.decode_columns.decode_columns(source, allocate=allocate)
            assert is_released(source)
            del source[-1]

    def test_the_same_memory_for_everything_does_not_crash(self, form: Form) -> None:
        data = built(form, MANY)
        for size in (4096, 1 << 16):
            memory = bytearray(size)
            with suppress(RuntimeError, CorruptMessage, ValueError):
                form.decode_columns.decode_columns(data, allocate=lambda _, memory=memory: memory)

    @pytest.mark.parametrize("garbage", [0x00, 0x7F, 0x80, 0xFF])
    def test_memory_that_changes_while_it_is_filled_is_detected(self, form: Form, garbage: int) -> None:
        data = built(form, MANY)
        for victim in range(14):
            for moment in range(victim + 1, 14):
                given: list[bytearray] = []

                def allocate(size: int, given: Any = given, victim: int = victim, moment: int = moment) -> bytearray:
                    given.append(bytearray(size))
                    if len(given) - 1 == moment and victim < len(given):
                        given[victim][:] = bytes([garbage]) * len(given[victim])
                    return given[-1]

                with suppress(RuntimeError, CorruptMessage):
                    form.decode_columns.decode_columns(data, allocate=allocate)

    def test_batches_that_change_during_decoding_are_detected(self, form: Form) -> None:
        for moment in range(14):
            data = built(form, MANY)
            calls = iter(range(100))

            def allocate(size: int, data: Any = data, calls: Any = calls, moment: int = moment) -> bytearray:
                if next(calls) == moment:
                    data[61:] = bytes(b ^ 0x55 for b in data[61:])
                return bytearray(size)

            with suppress(RuntimeError, CorruptMessage):
                form.decode_columns.decode_columns(data, allocate=allocate)


def test_columns_constructed_directly_do_not_crash(form: Form) -> None:
    decode = form.decode_columns
    for empty in (decode.BytesColumn.__new__(decode.BytesColumn), decode.BytesColumn(bytearray, 3)):
        with pytest.raises(AttributeError):
            _ = empty.buffers
    empty = decode.Columns.__new__(decode.Columns)
    for name in ("offsets", "timestamps", "timestamp_types", "header_starts"):
        with pytest.raises(AttributeError):
            getattr(empty, name)


@pytest.mark.parametrize("rows", [-1, -2, -100])
def test_a_negative_number_of_rows_is_refused(form: Form, rows: int) -> None:
    with pytest.raises(ValueError, match=f"number of rows: {rows}"):
        form.decode_columns.BytesColumn(bytearray, rows)
    with pytest.raises(ValueError, match=f"number of rows: {rows}"):
        form.decode_columns.Columns(bytearray, rows)


def test_columns_are_initialized_once(form: Form) -> None:
    columns = form.decode_columns.decode_columns(batch())

    for made in (columns, columns.keys):
        with pytest.raises(RuntimeError, match="already initialized"):
            made.__init__(bytearray, 1)


def test_memory_may_overlap_the_batches(form: Form) -> None:
    data = built(form, MANY)
    memory = memoryview(data)
    with suppress(RuntimeError, CorruptMessage, ValueError):
        form.decode_columns.decode_columns(data, allocate=lambda size: memory[-size:] if size else bytearray())


def test_columns_release_the_batches(form: Form) -> None:
    source = built(form, MANY)
    columns = form.decode_columns.decode_columns(source)

    assert is_released(source)
    offsets = columns.offsets
    del columns
    gc.collect()
    offsets.append(0)
