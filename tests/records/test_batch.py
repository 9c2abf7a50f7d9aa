"""Batch headers: parsing, validation, offsets."""

from __future__ import annotations

import array
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import cramjam
import crc32c
import pytest

from ottla.core.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    UnsupportedCompressionType,
    UnsupportedForMessageFormat,
)

from .making import (
    CONTROL,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    MAX_INT32,
    MAX_INT64,
    TRANSACTIONAL,
    batch,
    is_released,
    record,
)

if TYPE_CHECKING:
    from fuzz.forms import Form

TWO = record(0) + record(1)
HIGHEST_BASE_OFFSET = 0x7FFFFFFF00000000


def lz4_frame(*, is_linked: bool) -> bytes:
    compressor = cramjam.lz4.Compressor(block_linked=is_linked)
    compressor.compress(record())
    return bytes(compressor.finish())


def test_every_field_of_a_header_is_read_from_its_place(form: Form) -> None:
    data = batch(
        TWO,
        2,
        base_offset=1 << 40,
        leader_epoch=-7,
        attributes=0x38 | GZIP,
        base_timestamp=-1,
        max_timestamp=MAX_INT64,
        producer_id=1 << 33,
        producer_epoch=-3,
        base_sequence=MAX_INT32,
    )

    header = form.batch.read_header(data)

    assert (header.base_offset, header.last_offset, header.next_offset) == (1 << 40, (1 << 40) + 1, (1 << 40) + 2)
    assert (header.batch_length, header.size) == (49 + len(TWO), 61 + len(TWO))
    assert (header.leader_epoch, header.attributes, header.last_offset_delta) == (-7, 0x39, 1)
    assert (header.base_timestamp, header.max_timestamp) == (-1, MAX_INT64)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1 << 33, -3, MAX_INT32)
    assert (header.record_count, header.compression) == (2, GZIP)
    assert (header.is_log_append_time, header.is_transactional, header.is_control) == (True, True, True)
    assert type(header.is_control) is bool
    assert header.crc == crc32c.crc32c(bytes(data[21:]))


def test_the_repr_of_a_header_shows_its_fields(form: Form) -> None:
    header = form.batch.read_header(batch(TWO, 2, base_offset=5, producer_id=9, producer_epoch=1, base_sequence=3))

    assert repr(header) == "<batch 5..6, 2 records, 79 bytes, producer 9/1 at 3>"


@pytest.mark.parametrize(
    ("base_sequence", "last_offset_delta", "last_sequence"),
    [(-1, 0, -1), (-1, 9, -1), (0, 0, 0), (10, 4, 14), (MAX_INT32, 0, MAX_INT32), (MAX_INT32, 1, 0), (MAX_INT32, 5, 4)],
)
def test_sequences_wrap_around_to_zero(
    form: Form, base_sequence: int, last_offset_delta: int, last_sequence: int
) -> None:
    header = form.batch.read_header(batch(base_sequence=base_sequence, last_offset_delta=last_offset_delta))

    assert header.last_sequence == last_sequence


def test_a_header_is_read_at_any_position_of_any_flat_buffer(form: Form) -> None:
    data = b"xyz" + batch(base_offset=4)

    for source in (data, bytearray(data), memoryview(data), array.array("B", data)):
        assert form.batch.read_header(source, 3).base_offset == 4
        assert form.batch.check_batch(memoryview(source), 3).base_offset == 4


@pytest.mark.parametrize("position", [1, 61, 62, 200, 1 << 31, 1 << 63, 1 << 70])
def test_a_position_past_the_last_header_is_corrupt_however_far_it_is(form: Form, position: int) -> None:
    with pytest.raises(CorruptMessage, match="a batch header takes 61 bytes, only"):
        form.batch.read_header(b"\xff" * 61, position)


@pytest.mark.parametrize("position", [-1, -61, -(1 << 70)])
def test_a_negative_position_is_a_value_error(form: Form, position: int) -> None:
    with pytest.raises(ValueError, match="position cannot be negative"):
        form.batch.read_header(batch(), position)
    with pytest.raises(ValueError, match="position cannot be negative"):
        form.batch.check_batch(batch(), position)


@pytest.mark.parametrize("function", ["read_header", "check_batch", "check_produced"])
def test_an_object_that_is_not_a_byte_buffer_is_refused(form: Form, function: str) -> None:
    read = getattr(form.batch, function)

    with pytest.raises(TypeError):
        read(None)
    with pytest.raises(TypeError):
        read("text")
    with pytest.raises(BufferError):
        read(memoryview(bytes(200))[::2])


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("size", [17, 34, 60, 61, 200])
def test_the_old_message_formats_are_refused_by_name(form: Form, magic: int, size: int) -> None:
    old = bytearray(size)
    struct.pack_into(">i", old, 8, size - 12)
    old[16] = magic

    for read in (form.batch.read_header, form.batch.check_batch, form.batch.check_produced):
        with pytest.raises(UnsupportedForMessageFormat, match=f"v{magic} is not supported"):
            read(old)
    with pytest.raises(UnsupportedForMessageFormat):
        next(form.reader.RecordReader(old))


@pytest.mark.parametrize("magic", [3, 127, -1, -128])
def test_an_unknown_message_format_is_corrupt(form: Form, magic: int) -> None:
    with pytest.raises(CorruptMessage, match=f"unknown message format {magic & 0xFF}"):
        form.batch.read_header(batch(magic=magic))


@pytest.mark.parametrize("size", [0, 1, 16, 60])
def test_less_than_a_header_is_corrupt(form: Form, size: int) -> None:
    start = bytes(batch()[:size])

    with pytest.raises(CorruptMessage, match=f"only {size} are left"):
        form.batch.check_batch(start)


@pytest.mark.parametrize("batch_length", [48, 0, -1, -(1 << 31)])
def test_a_length_that_leaves_no_room_for_the_header_is_corrupt(form: Form, batch_length: int) -> None:
    with pytest.raises(CorruptMessage, match=f"invalid batch length {batch_length}"):
        form.batch.read_header(batch(batch_length=batch_length))


def test_a_length_past_the_end_is_read_but_not_accepted(form: Form) -> None:
    short = batch(batch_length=MAX_INT32)

    assert form.batch.read_header(short).size == MAX_INT32 + 12
    with pytest.raises(CorruptMessage, match="a batch of 2147483659 bytes is truncated to 70"):
        form.batch.check_batch(short)


@pytest.mark.parametrize("base_offset", [-1, -(1 << 63), HIGHEST_BASE_OFFSET + 1, MAX_INT64])
def test_a_base_offset_from_which_offsets_could_overflow_is_corrupt(form: Form, base_offset: int) -> None:
    with pytest.raises(CorruptMessage, match=f"invalid base offset {base_offset}"):
        form.batch.read_header(batch(base_offset=base_offset))


def test_the_highest_base_offset_is_accepted(form: Form) -> None:
    header = form.batch.check_batch(batch(base_offset=HIGHEST_BASE_OFFSET, last_offset_delta=MAX_INT32))

    assert header.next_offset == HIGHEST_BASE_OFFSET + (1 << 31)


@pytest.mark.parametrize("wrong", [{"last_offset_delta": -1}, {"record_count": -1}, {"record_count": -(1 << 31)}])
def test_negative_counts_are_corrupt(form: Form, wrong: dict[str, int]) -> None:
    with pytest.raises(CorruptMessage, match="invalid record count"):
        form.batch.read_header(batch(**wrong))


def test_a_wrong_checksum_is_corrupt_and_the_error_names_both(form: Form) -> None:
    data = batch()
    data[-1] ^= 1
    [should_be] = struct.unpack_from(">I", data, 17)
    found = crc32c.crc32c(bytes(data[21:]))

    with pytest.raises(CorruptMessage, match=f"computed {found:#010x}, stored {should_be:#010x}"):
        form.batch.check_batch(data)


def test_a_batch_is_validated_at_its_position_among_others(form: Form) -> None:
    first, second = batch(base_offset=0), batch(TWO, 2, base_offset=1)

    assert form.batch.check_batch(first + second).next_offset == 1
    assert form.batch.check_batch(first + second, len(first)).next_offset == 3


class TestCheckProduced:
    """Validation of batches from producers, rule by rule."""

    def test_a_proper_batch_is_accepted(self, form: Form) -> None:
        assert form.batch.check_produced(batch(TWO, 2)).record_count == 2

    def test_an_idempotent_producers_batch_is_accepted(self, form: Form) -> None:
        fields = {"producer_id": 0, "producer_epoch": 0, "base_sequence": 0}

        assert form.batch.check_produced(batch(**fields)).producer_id == 0
        assert form.batch.check_produced(batch(attributes=TRANSACTIONAL, **fields)).is_transactional

    def test_two_batches_are_refused(self, form: Form) -> None:
        with pytest.raises(InvalidRecord, match="exactly one batch"):
            form.batch.check_produced(batch() + batch())

    def test_nothing_may_follow_the_batch(self, form: Form) -> None:
        with pytest.raises(InvalidRecord, match="exactly one batch"):
            form.batch.check_produced(batch() + b"\x00")

    @pytest.mark.parametrize(("count", "last_offset_delta"), [(0, 0), (1, 1), (2, 0), (2, MAX_INT32)])
    def test_record_count_and_offset_range_must_match(self, form: Form, count: int, last_offset_delta: int) -> None:
        payload = b"".join(map(record, range(count)))

        with pytest.raises(InvalidRecord, match=f"record count {count} does not match"):
            form.batch.check_produced(batch(payload, count, last_offset_delta=last_offset_delta))

    def test_more_records_than_bytes_are_refused_without_counting_them(self, form: Form) -> None:
        with pytest.raises(InvalidRecord, match="2147483647 records do not fit into 70 bytes"):
            form.batch.check_produced(batch(count=MAX_INT32))

    def test_lz4_blocks_must_not_refer_to_each_other(self, form: Form) -> None:
        with pytest.raises(CorruptMessage, match="dependent LZ4 blocks"):
            form.batch.check_produced(batch(lz4_frame(is_linked=True), attributes=LZ4))
        for frame in (lz4_frame(is_linked=False), b"\x04", b""):
            assert form.batch.check_produced(batch(frame, attributes=LZ4)).record_count == 1

    def test_the_record_count_of_a_compressed_batch_is_not_checked(self, form: Form) -> None:
        assert form.batch.check_produced(batch(count=1000, attributes=GZIP)).record_count == 1000

    def test_control_batches_from_clients_are_refused(self, form: Form) -> None:
        with pytest.raises(InvalidRecord, match="control batches"):
            form.batch.check_produced(batch(attributes=CONTROL))

    def test_log_append_time_from_clients_is_refused(self, form: Form) -> None:
        with pytest.raises(InvalidTimestamp, match="LogAppendTime"):
            form.batch.check_produced(batch(attributes=LOG_APPEND_TIME))

    @pytest.mark.parametrize("codec", [5, 6, 7])
    def test_an_unknown_compression_is_refused_by_name(self, form: Form, codec: int) -> None:
        with pytest.raises(UnsupportedCompressionType, match=f"unknown compression type {codec}"):
            form.batch.check_produced(batch(attributes=codec))

    @pytest.mark.parametrize("missing", ["producer_epoch", "base_sequence"])
    def test_a_producer_id_needs_an_epoch_and_a_sequence(self, form: Form, missing: str) -> None:
        fields = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, missing: -1}

        with pytest.raises(InvalidRecord, match="needs an epoch and a sequence"):
            form.batch.check_produced(batch(**fields))

    def test_a_transaction_needs_a_producer_id(self, form: Form) -> None:
        with pytest.raises(InvalidRecord, match="a transactional batch needs a producer id"):
            form.batch.check_produced(batch(attributes=TRANSACTIONAL))

    def test_corruption_takes_precedence_over_other_errors(self, form: Form) -> None:
        data = batch(attributes=CONTROL)
        data[-1] ^= 1

        with pytest.raises(CorruptMessage):
            form.batch.check_produced(data)


class TestPlace:
    def test_assigning_an_offset_keeps_the_checksum_valid(self, form: Form) -> None:
        data = bytearray(b"before") + batch(TWO, 2) + b"after"
        untouched = bytes(data)

        form.batch.place(data, 6, (1 << 61) + 3, 42)

        header = form.batch.check_batch(data, 6)
        assert (header.base_offset, header.leader_epoch) == ((1 << 61) + 3, 42)
        assert data[:6] + data[14:18] + data[22:] == untouched[:6] + untouched[14:18] + untouched[22:]

    @pytest.mark.parametrize("base_offset", [0, 1, 255, 1 << 31, (1 << 32) - 1, 1 << 40, MAX_INT64, -1, -(1 << 63)])
    @pytest.mark.parametrize("leader_epoch", [0, -1, MAX_INT32, -(1 << 31)])
    def test_every_offset_and_epoch_is_written(self, form: Form, base_offset: int, leader_epoch: int) -> None:
        data = bytearray(61)

        form.batch.place(data, 0, base_offset, leader_epoch)

        assert struct.unpack_from(">q4xi", data) == (base_offset, leader_epoch)

    @pytest.mark.parametrize(
        ("base_offset", "leader_epoch"), [(1 << 63, 0), (-(1 << 63) - 1, 0), (0, 1 << 31), (0, -(1 << 31) - 1)]
    )
    def test_a_number_out_of_range_changes_nothing(self, form: Form, base_offset: int, leader_epoch: int) -> None:
        data = batch()
        before = bytes(data)

        with pytest.raises(OverflowError):
            form.batch.place(data, 0, base_offset, leader_epoch)

        assert data == before
        assert is_released(data)

    @pytest.mark.parametrize("position", [-1, 1, 61, 1 << 70, -(1 << 70)])
    def test_there_must_be_a_header_to_write_to(self, form: Form, position: int) -> None:
        data = bytearray(61)

        with pytest.raises(ValueError, match="no batch at"):
            form.batch.place(data, position, 1, 1)

        assert data == bytearray(61)
        assert is_released(data)

    def test_it_must_be_writable(self, form: Form) -> None:
        with pytest.raises(BufferError):
            form.batch.place(bytes(61), 0, 1, 1)
        with pytest.raises(BufferError):
            form.batch.place(memoryview(bytearray(200))[::2], 0, 1, 1)

    def test_the_buffer_size_is_counted_in_bytes(self, form: Form) -> None:
        empty_rows = memoryview(array.array("q", [0] * 61))

        form.batch.place(empty_rows, 488 - 61, 1, 1)
        with pytest.raises(ValueError, match="no batch at"):
            form.batch.place(empty_rows, 488 - 60, 1, 1)


class TestSetLogAppendTime:
    def test_setting_log_append_time_updates_the_checksum(self, form: Form) -> None:
        data = batch(record(timestamp_delta=5), attributes=GZIP, base_timestamp=1000, max_timestamp=1005)

        header = form.batch.set_log_append_time(data, 77)

        assert header.crc == form.batch.check_batch(data).crc == crc32c.crc32c(bytes(data[21:]))
        assert (header.is_log_append_time, header.compression) == (True, GZIP)
        assert (header.base_timestamp, header.max_timestamp) == (1000, 77)

    def test_log_append_time_applies_to_every_record(self, form: Form) -> None:
        data = batch(TWO, 2, base_timestamp=1000)
        form.batch.set_log_append_time(data, 77)

        assert [(r.timestamp, r.is_log_append_time) for r in form.reader.RecordReader(data)] == [(77, True)] * 2

    def test_what_follows_the_batch_is_not_part_of_it(self, form: Form) -> None:
        data = batch() + b"more"

        form.batch.set_log_append_time(data, 77)

        assert form.batch.check_batch(data).max_timestamp == 77
        assert data.endswith(b"more")

    def test_a_truncated_batch_is_not_stamped(self, form: Form) -> None:
        data = batch()[:-1]
        before = bytes(data)

        with pytest.raises(CorruptMessage, match="is truncated to"):
            form.batch.set_log_append_time(data, 77)

        assert data == before

    def test_a_timestamp_of_more_than_64_bits_changes_nothing(self, form: Form) -> None:
        data = batch()
        before = bytes(data)

        with pytest.raises(struct.error):
            form.batch.set_log_append_time(data, 1 << 63)

        assert data == before


class TestCountIntact:
    """Recovery scan: how far batches are complete, valid and in order."""

    ONE = batch(TWO, 2, base_offset=10)
    NEXT = batch(TWO, 2, base_offset=12)
    LATER = batch(TWO, 2, base_offset=20)
    SIZE = len(ONE)

    def test_an_intact_log_is_valid_to_its_end(self, form: Form) -> None:
        assert form.batch.count_intact(self.ONE + self.NEXT + self.LATER, 10) == (3 * self.SIZE, 22)
        assert form.batch.count_intact(self.ONE, 0) == (self.SIZE, 12)
        assert form.batch.count_intact(b"", 7) == (0, 7)

    def test_the_valid_part_ends_at_a_torn_batch(self, form: Form) -> None:
        whole = self.ONE + self.NEXT
        for size in range(self.SIZE, len(whole)):
            assert form.batch.count_intact(whole[:size], 0) == (self.SIZE, 12)

    def test_the_valid_part_ends_at_any_flipped_bit(self, form: Form) -> None:
        whole = self.ONE + self.NEXT
        for position in range(self.SIZE, len(whole)):
            if not self.SIZE <= position < self.SIZE + 8 and not self.SIZE + 12 <= position < self.SIZE + 16:
                for bit in range(8):
                    damaged = bytearray(whole)
                    damaged[position] ^= 1 << bit
                    assert form.batch.count_intact(damaged, 0) == (self.SIZE, 12)
                    assert is_released(damaged)

    @pytest.mark.parametrize("first", [ONE, NEXT, LATER])
    @pytest.mark.parametrize("second", [ONE, NEXT])
    def test_the_valid_part_ends_where_offsets_do_not_ascend(
        self, form: Form, first: bytearray, second: bytearray
    ) -> None:
        is_ascending = first is self.ONE and second is self.NEXT

        assert form.batch.count_intact(first + second, 0)[0] == self.SIZE * (2 if is_ascending else 1)

    def test_offsets_below_the_floor_are_invalid(self, form: Form) -> None:
        assert form.batch.count_intact(self.ONE, 11) == (0, 11)

    def test_the_valid_part_ends_at_an_old_format(self, form: Form) -> None:
        assert form.batch.count_intact(self.ONE + batch(magic=1, base_offset=12), 0) == (self.SIZE, 12)

    def test_a_floor_of_more_than_64_bits_is_an_overflow_error(self, form: Form) -> None:
        with pytest.raises(OverflowError):
            form.batch.count_intact(self.ONE, 1 << 63)


def test_no_buffer_is_held_after_an_error(form: Form) -> None:
    for broken in (batch(magic=9), batch(batch_length=4), batch(last_offset_delta=-1), batch()[:70], bytearray(3)):
        for check in (form.batch.read_header, form.batch.check_batch, form.batch.check_produced):
            with suppress(CorruptMessage):
                check(broken)
        assert is_released(broken)
