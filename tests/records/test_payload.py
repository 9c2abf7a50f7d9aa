"""Hostile records inside a batch with a valid header and checksum."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from ottla.core.errors import CorruptMessage, UnsupportedCompressionType

from .making import MAX_INT32, MAX_INT64, MIN_INT64, batch, fields, is_released, record, varint

if TYPE_CHECKING:
    from fuzz.forms import Form


def read(form: Form, data: bytearray) -> list[tuple[Any, ...]]:
    return [fields(each) for each in form.reader.RecordReader(data)]


def refusal(form: Form, data: bytearray) -> str:
    """The error of the records, which must be the same for reader and columns and release all buffers."""
    messages = []
    for decode in (read, lambda form, data: form.decode_columns.decode_columns(data)):
        try:
            decode(form, data)
        except CorruptMessage as refused:
            messages.append(str(refused))
    assert len(messages) == 2
    assert messages[0] == messages[1]
    assert is_released(data)
    return messages[0]


@pytest.mark.parametrize(
    "number", [0, -1, 1, 63, -64, 64, -65, 8191, -8192, 8192, 1 << 20, -(1 << 20), MAX_INT32, -(1 << 31)]
)
def test_timestamps_of_every_width_are_read(form: Form, number: int) -> None:
    assert read(form, batch(record(timestamp_delta=number)))[0][1] == number


@pytest.mark.parametrize("number", [1 << 40, -(1 << 40), 1 << 62, MAX_INT64, MIN_INT64])
def test_timestamps_of_64_bits_are_read(form: Form, number: int) -> None:
    assert read(form, batch(record(timestamp_delta=number)))[0][1] == number


def test_a_varint_may_be_longer_than_necessary(form: Form) -> None:
    # attributes, timestamp 0 in three bytes, offset, key and value null, no headers
    body = b"\x00" + b"\x80\x80\x00" + b"\x00" + b"\x01\x01" + b"\x00"

    assert read(form, batch(varint(len(body)) + body)) == [(0, 0, False, None, None, ())]


@pytest.mark.parametrize("width", [10, 11, 12])
def test_an_endless_varint_is_refused(form: Form, width: int) -> None:
    endless = b"\xff" * width

    assert "exceeds 32 bits" in refusal(form, batch(endless))
    assert "exceeds 64 bits" in refusal(form, batch(varint(30) + b"\x00" + endless + bytes(20)))


def test_a_varint_of_eleven_bytes_is_refused_even_if_its_value_is_small(form: Form) -> None:
    body = b"\x00" + b"\x80" * 10 + b"\x00" + b"\x00" + b"\x01\x01" + b"\x00"

    assert "exceeds 64 bits" in refusal(form, batch(varint(len(body)) + body))


@pytest.mark.parametrize(("last_byte", "fits"), [(0x0F, True), (0x10, False), (0x1F, False), (0x7F, False)])
def test_the_fifth_byte_of_an_int32_has_four_bits(form: Form, last_byte: int, fits: bool) -> None:
    message = refusal(form, batch(b"\xff\xff\xff\xff" + bytes([last_byte]) + bytes(20)))

    assert message.startswith("invalid record length -2147483648" if fits else "a varint exceeds 32 bits")


def test_the_tenth_byte_of_an_int64_has_one_bit(form: Form) -> None:
    body = b"\x00" + b"\xff" * 9 + b"\x01" + b"\x00" + b"\x01\x01" + b"\x00"
    assert read(form, batch(varint(len(body)) + body))[0][1] == MIN_INT64

    assert "exceeds 64 bits" in refusal(form, batch(varint(len(body)) + body.replace(b"\xff\x01", b"\xff\x02")))


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (record(length=0), "invalid record length 0"),
        (record(length=5), "invalid record length 5"),
        (record(length=-1), "invalid record length -1"),
        (record(length=-(1 << 31)), "invalid record length -2147483648"),
        (record(length=MAX_INT32), "invalid record length 2147483647"),
        (record(length=9), "invalid record length 9 (8 bytes left)"),
        (record(length=7) + b"\x00", "0 headers do not fit into their record"),
        (record(value=b"vv", length=8) + b"\x00", "0 headers do not fit into their record"),
        (record(length=9) + b"\x00", "a record's length does not match its contents"),
        (record() + b"\x00", "1 bytes after the last record"),
        (bytes(7), "invalid record length 0"),
        (b"\x80" * 7, "a varint exceeds 32 bits"),
        (b"\x0c\x00\x80\x80\x80\x80\x80", "a record ends in the middle of a varint"),
    ],
)
def test_record_lengths_are_checked_against_the_data(form: Form, payload: bytes, message: str) -> None:
    assert message in refusal(form, batch(payload))


@pytest.mark.parametrize("length", [2, 100, MAX_INT32])
def test_keys_and_values_end_within_their_record(form: Form, length: int) -> None:
    key_too_long = b"\x00\x00\x00" + varint(length) + b"k" + b"\x01\x00"
    value_too_long = b"\x00\x00\x00" + b"\x01" + varint(length) + b"v" + b"\x00"
    for body in (key_too_long, value_too_long):
        payload = varint(len(body)) + body + (record(1) if length == 2 else b"")

        message = refusal(form, batch(payload, 2 if length == 2 else 1))

        assert "exceeds its record" in message or "do not fit into their record" in message


@pytest.mark.parametrize("length", [-2, -100, -(1 << 31)])
def test_only_minus_one_means_null(form: Form, length: int) -> None:
    for body in (
        b"\x00\x00\x00" + varint(length) + b"\x01\x00",
        b"\x00\x00\x00\x01" + varint(length) + b"\x00",
        b"\x00\x00\x00\x01\x01\x02\x02h" + varint(length),
    ):
        assert refusal(form, batch(varint(len(body)) + body)) == f"invalid length {length}"


@pytest.mark.parametrize("count", [-1, 1, 2, 1000, MAX_INT32, -(1 << 31)])
def test_header_counts_are_checked_against_the_data(form: Form, count: int) -> None:
    assert f"{count} headers do not fit" in refusal(form, batch(record(header_count=count)))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_headers_end_where_their_record_ends(form: Form, count: int) -> None:
    two = [(b"a", b"1"), (b"b", b"2")]

    message = refusal(form, batch(record(headers=two, header_count=count) + record(1), 2))

    assert "does not match" in message or "exceeds its record" in message


def test_a_header_needs_a_name(form: Form) -> None:
    assert refusal(form, batch(record(headers=[(None, b"1")]))) == "a header has no name"


@pytest.mark.parametrize("name", [b"\xff", b"ok\x80", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xc3"])
def test_a_header_name_is_utf8(form: Form, name: bytes) -> None:
    assert refusal(form, batch(record(headers=[(b"good", b""), (name, b"1")]))) == "a header's name is not UTF-8"


@pytest.mark.parametrize("offset_delta", [-1, 2, MAX_INT32, -(1 << 31)])
def test_offsets_stay_within_those_of_the_batch(form: Form, offset_delta: int) -> None:
    message = refusal(form, batch(record(offset_delta), last_offset_delta=1))

    assert message == f"offset delta {offset_delta} exceeds the batch's 2 offsets"


@pytest.mark.parametrize(
    ("base", "delta"),
    [(MAX_INT64, 1), (1, MAX_INT64), (MIN_INT64, -1), (-1, MIN_INT64), (MIN_INT64, MIN_INT64), (MAX_INT64, MAX_INT64)],
)
def test_a_timestamp_of_more_than_64_bits_is_refused(form: Form, base: int, delta: int) -> None:
    data = batch(record(timestamp_delta=delta), base_timestamp=base)

    assert refusal(form, data) == "a timestamp exceeds 64 bits"


@pytest.mark.parametrize(
    ("base", "delta", "timestamp"),
    [(MAX_INT64, MIN_INT64, -1), (MIN_INT64, MAX_INT64, -1), (0, MIN_INT64, MIN_INT64), (MIN_INT64, 0, MIN_INT64)],
)
def test_the_outermost_timestamps_are_read(form: Form, base: int, delta: int, timestamp: int) -> None:
    [row] = read(form, batch(record(timestamp_delta=delta), base_timestamp=base))

    assert row[1] == timestamp


@pytest.mark.parametrize("count", [2, 1000, MAX_INT32])
def test_more_records_than_could_fit_are_refused_before_any_is_read(form: Form, count: int) -> None:
    assert refusal(form, batch(record(), count)) == f"{count} records do not fit into 9 bytes"


def test_fewer_records_than_there_are_is_refused_at_the_end(form: Form) -> None:
    data = batch(record(0) + record(1), 1, last_offset_delta=1)

    assert refusal(form, data) == "9 bytes after the last record of a batch"


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_compression_is_refused_by_name(form: Form, codec: int) -> None:
    for decode in (read, lambda form, data: form.decode_columns.decode_columns(data)):
        with pytest.raises(UnsupportedCompressionType, match=f"unknown compression type {codec}"):
            decode(form, batch(attributes=codec))


def test_an_empty_batch_left_by_compaction_is_read(form: Form) -> None:
    assert read(form, batch(b"", 0, last_offset_delta=9)) == []
    assert form.decode_columns.decode_columns(batch(b"", 0, last_offset_delta=9)).count == 0


def test_a_payload_constructed_directly_is_empty_and_opened_once(form: Form) -> None:
    payload = form.payload.Payload.__new__(form.payload.Payload)
    header = form.batch.read_header(batch())

    payload.__init__(header, record())
    if form.name == "compiled":
        with pytest.raises(RuntimeError, match="already open"):
            payload.__init__(header, record())


def test_a_payload_that_is_refused_releases_its_buffer(form: Form) -> None:
    source = bytearray(record())

    with suppress(CorruptMessage):
        form.payload.Payload(form.batch.read_header(batch(count=100)), source)
    assert is_released(source)
