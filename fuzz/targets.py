"""Fuzz targets: each takes any bytes and runs them through every form of the codec.

The forms must agree, in what comes out or in how it is refused, and nothing but a refusal that callers expect may
be raised. Random bytes would end at the checksum, so most inputs have theirs put right first: the first byte of an
input says how it is used.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from ottla.core.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    UnsupportedCompressionType,
    UnsupportedForMessageFormat,
)
from ottla.records.checksum import crc32c

if TYPE_CHECKING:
    from collections.abc import Callable

    from fuzz.forms import Form

REFUSALS: Final = (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    UnsupportedCompressionType,
    UnsupportedForMessageFormat,
)
MAX_DECOMPRESSED_BYTES: Final = 1 << 20

_RAW: Final = 0x01
_WITH_CONTROL: Final = 0x02
_FROM_THE_MIDDLE: Final = 0x04

Outcome = tuple[str, Any]
Target = "Callable[[bytes], Outcome]"


def repaired(data: bytes) -> bytearray:
    """The same bytes as batches whose magic, length and checksum are right, as far as there are batches."""
    batches = bytearray(data)
    at = 0
    while len(batches) - at >= 61:
        length = int.from_bytes(batches[at + 8 : at + 12], "big", signed=True)
        end = at + 12 + length
        if length < 49 or end > len(batches):
            end = len(batches)
            struct.pack_into(">i", batches, at + 8, end - at - 12)
        batches[at + 16] = 2
        struct.pack_into(">I", batches, at + 17, crc32c(memoryview(batches)[at + 21 : end]))
        at = end
    return batches


def outcome(run: Callable[[], Any]) -> Outcome:
    """The result or the expected error; any other error is a finding."""
    try:
        return "came out", run()
    except REFUSALS as refused:
        return type(refused).__name__, str(refused)


class Targets:
    """Every target, for these forms of the codec."""

    def __init__(self, forms: list[Form]) -> None:
        self.forms = forms

    def reader(self, data: bytes) -> Outcome:
        source, from_offset, with_control = _as_batches(data)
        return self._same(lambda form: _read(form, source, from_offset, with_control))

    def columns(self, data: bytes) -> Outcome:
        source, from_offset, _ = _as_batches(data)
        columns = self._same(lambda form: _decode(form, source, from_offset))
        records = outcome(lambda: _read(self.forms[0], source, from_offset, with_control=False))
        # The two ways to decode agree, but for the order in which they meet two defects of the same buffer, and
        # for the limit, which is for all batches together where all are held at once.
        is_same = columns == records or "came out" not in (columns[0], records[0])
        assert is_same or "decompress to more than" in columns[1], (columns, records)
        return columns

    def batch(self, data: bytes) -> Outcome:
        source, _, _ = _as_batches(data)
        return self._same(lambda form: _inspect(form, source, data[:1]))

    def compression(self, data: bytes) -> Outcome:
        codec = data[0] & 7 if data else 0
        return self._same(lambda form: _decompress(form, codec, memoryview(data)[1:]))

    def builder(self, data: bytes) -> Outcome:
        return self._same(lambda form: _build(form, data))

    def table(self, data: bytes) -> Outcome:
        return self._same(lambda form: _append(form, data))

    def _same(self, run: Callable[[Form], Any]) -> Outcome:
        outcomes = [outcome(lambda form=form: run(form)) for form in self.forms]  # type: ignore[misc]
        assert outcomes[0] == outcomes[-1], outcomes
        return outcomes[0]


NAMES: Final = ("reader", "columns", "batch", "compression", "builder", "table")


def _as_batches(data: bytes) -> tuple[bytearray, int, bool]:
    flags = data[0] if data else 0
    source = bytearray(data[1:]) if flags & _RAW else repaired(data[1:])
    from_offset = 0
    if flags & _FROM_THE_MIDDLE and len(source) >= 61:
        base_offset, last_delta = struct.unpack_from(">q15xi", source)
        from_offset = min(max(base_offset + last_delta // 2, 0), (1 << 63) - 1)
    return source, from_offset, bool(flags & _WITH_CONTROL)


def _read(form: Form, source: bytearray, from_offset: int, with_control: bool) -> list[tuple[Any, ...]]:
    reader = form.reader.RecordReader(source, from_offset, MAX_DECOMPRESSED_BYTES, with_control)
    return [
        (record.offset, record.timestamp, record.is_log_append_time, record.key, record.value, record.headers)
        for record in reader
    ]


def _decode(form: Form, source: bytearray, from_offset: int) -> list[tuple[Any, ...]]:
    columns = form.decode_columns.decode_columns(source, from_offset, max_decompressed_bytes=MAX_DECOMPRESSED_BYTES)
    count = columns.count
    headers = list(zip(_strings(columns.header_names), _strings(columns.header_values), strict=True))
    starts = struct.unpack_from(f"={count + 1}i", columns.header_starts)
    return list(
        zip(
            struct.unpack_from(f"={count}q", columns.offsets),
            struct.unpack_from(f"={count}q", columns.timestamps),
            [bool(kind) for kind in columns.timestamp_types[:count]],
            _strings(columns.keys),
            _strings(columns.values),
            [
                tuple((name.decode(), value) for name, value in headers[first:limit])
                for first, limit in pairwise(starts)
            ],
            strict=True,
        )
    )


def _strings(column: Any) -> list[Any]:  # noqa: ANN401
    validity, starts, data = column.buffers
    bounds = struct.unpack_from(f"={column.count + 1}i", starts)
    return [
        None if validity and not validity[row >> 3] & 1 << (row & 7) else bytes(data[start:end])
        for row, (start, end) in enumerate(pairwise(bounds))
    ]


def _inspect(form: Form, source: bytearray, flags: bytes) -> list[Any]:
    batch = form.batch
    until_offset, max_bytes = (1 << 62, 1 << 20) if flags < b"\x80" else (1000, 100)
    found: list[Any] = [
        outcome(lambda: repr(batch.read_header(source))),
        outcome(lambda: repr(batch.check_batch(source))),
        outcome(lambda: repr(batch.check_produced(source))),
        outcome(lambda: form.batches.find_batches(source, 0, until_offset, max_bytes)),
        outcome(lambda: form.batches.find_batches(source, 3, until_offset, max_bytes)),
        outcome(lambda: batch.count_intact(source, 0)),
        outcome(lambda: form.control.read_end_marker(source) if batch.read_header(source).is_control else None),
    ]
    if len(source) >= 61:
        placed = bytearray(source)
        batch.place(placed, 0, 1 << 40, 7)
        assert placed[17:] == source[17:]
        found.append(bytes(placed[:17]))
        found.append(outcome(lambda: repr(batch.set_log_append_time(placed, 1234))))
        found.append(bytes(placed))
    return [str(each) for each in found]


def _decompress(form: Form, codec: int, data: memoryview) -> bytes:
    compression = form.compression
    came_out = bytes(compression.decompress(codec, data, MAX_DECOMPRESSED_BYTES))
    assert len(came_out) <= MAX_DECOMPRESSED_BYTES or codec == 0
    again = compression.decompress(codec, memoryview(compression.compress(codec, came_out)))
    assert bytes(again) == came_out
    return came_out


def _build(form: Form, data: bytes) -> list[Any]:
    """Records whose lengths and numbers come from the input, a few bytes each."""
    builder = form.encode.BatchBuilder(data[0] % 5 if data else 0, 1 << data[1] % 24 if len(data) > 1 else 4096)
    added = []
    at = 2
    while at + 12 <= len(data):
        key_length, value_length, header_length, kind = data[at : at + 4]
        timestamp = int.from_bytes(data[at + 4 : at + 12], "big", signed=True) >> (kind & 63)
        at += 12
        key, value, name = (data[at : at + length] for length in (key_length, value_length, header_length))
        at += key_length + value_length
        headers = [(name.decode("latin-1"), value if kind & 64 else None)] * (kind & 3)
        try:
            is_added = builder.append(timestamp, key if kind & 1 else None, value if kind & 2 else None, headers)
            added.append((is_added, builder.size, builder.count, builder.max_timestamp))
        except OverflowError as refused:
            added.append(("refused", str(refused)))
    batch = bytes(builder.build()) if builder.count else b""
    assert builder.compression or not batch or len(batch) == builder.size
    return [added, batch, _read(form, bytearray(batch), 0, with_control=True)]


def _append(form: Form, data: bytes) -> Any:
    """Columns whose buffers, one after the other, are the input; the first bytes say how they are cut."""
    rows, first, start, *lengths = data[:13].ljust(13, b"\x00")
    pieces, at = [], 13
    for length in lengths:
        pieces.append(data[at : at + length] if length else None)
        at += length
    bits, key_starts, value_starts, header_starts, names, content, timestamps, *_ = pieces
    encode, builder = form.encode_columns, form.encode.BatchBuilder(max_bytes=4096)
    try:
        keys = encode.ColumnSource((bits, key_starts, content), first, rows)
        values = encode.ColumnSource((None, value_starts, content), first, rows)
        pairs = (
            (encode.ColumnSource((None, names, content), 0, len(names) // 4 - 1) for _ in range(2)) if names else None
        )
        headers = pairs and encode.HeaderSource((bits, header_starts), *pairs, first, rows)
        stopped = encode.append_columns(builder, timestamps or b"", keys, values, headers, start, rows)
    except (ValueError, OverflowError) as refused:
        return type(refused).__name__, str(refused), builder.count
    return stopped, builder.size, bytes(builder.build()) if builder.count else b""
