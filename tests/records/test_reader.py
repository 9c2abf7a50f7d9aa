"""Records as objects."""

from __future__ import annotations

import array
import copy
import gc
import pickle
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.core.errors import CorruptMessage, UnsupportedCompressionType

from .making import (
    CONTROL,
    LOG_APPEND_TIME,
    MAX_INT64,
    NONE,
    ZSTD,
    batch,
    built,
    fields,
    headers,
    is_released,
    record,
    strings,
)

if TYPE_CHECKING:
    from fuzz.forms import Form

CODECS = range(5)


def read(form: Form, *args: Any, **options: Any) -> list[tuple[Any, ...]]:
    return [fields(each) for each in form.reader.RecordReader(*args, **options)]


def offsets(form: Form, *args: Any, **options: Any) -> list[int]:
    return [each.offset for each in form.reader.RecordReader(*args, **options)]


@settings(max_examples=40)
@pytest.mark.parametrize("codec", CODECS)
@given(rows=st.lists(st.tuples(st.integers(-(1 << 61), 1 << 61), strings, strings, headers), min_size=1, max_size=12))
def test_the_reader_returns_what_the_builder_took(form: Form, codec: int, rows: list[Any]) -> None:
    data = built(form, rows, codec)

    assert read(form, data) == [
        (offset, timestamp, False, key, value, tuple(pairs))
        for offset, (timestamp, key, value, pairs) in enumerate(rows)
    ]


def test_offsets_and_timestamps_are_relative_to_the_batch(form: Form) -> None:
    payload = record(0, 0) + record(1, -5) + record(2, 7)

    rows = read(form, batch(payload, 3, base_offset=100, base_timestamp=1000, max_timestamp=1007))

    assert [row[:3] for row in rows] == [(100, 1000, False), (101, 995, False), (102, 1007, False)]


def test_the_log_append_time_is_every_records_time(form: Form) -> None:
    payload = record(0, 0) + record(1, -5)

    rows = read(form, batch(payload, 2, base_timestamp=1000, max_timestamp=7777, attributes=LOG_APPEND_TIME))

    assert [row[1:3] for row in rows] == [(7777, True), (7777, True)]


def test_a_log_append_time_hides_even_an_impossible_delta(form: Form) -> None:
    data = batch(record(0, MAX_INT64), base_timestamp=5, max_timestamp=9, attributes=LOG_APPEND_TIME)

    assert read(form, data)[0][1] == 9


def test_gaps_as_after_compaction_are_kept(form: Form) -> None:
    data = batch(record(2) + record(5) + record(9), 3, base_offset=40, last_offset_delta=9)
    data += batch(b"", 0, base_offset=50, last_offset_delta=4) + batch(record(1), base_offset=60, last_offset_delta=3)

    assert offsets(form, data) == [42, 45, 49, 61]


@pytest.mark.parametrize("codec", CODECS)
def test_reading_starts_at_any_offset(form: Form, codec: int) -> None:
    rows = [(0, None, b"%d" % i, []) for i in range(5)]
    data = bytearray()
    for base_offset in (0, 5, 10):
        each = built(form, rows, codec)
        form.batch.place(each, 0, base_offset, 0)
        data += each

    for from_offset in range(16):
        assert offsets(form, data, from_offset) == list(range(from_offset, 15))
    assert offsets(form, data, from_offset=MAX_INT64) == []
    assert offsets(form, data, from_offset=-5) == list(range(15))


def test_batches_before_the_offset_are_validated_but_not_decompressed(form: Form) -> None:
    not_even_compressed = batch(b"garbage", 1, attributes=ZSTD)
    last = batch(base_offset=1)

    assert offsets(form, not_even_compressed + last, from_offset=1) == [1]
    not_even_compressed[-1] ^= 1
    with pytest.raises(CorruptMessage, match="checksum"):
        offsets(form, not_even_compressed + last, from_offset=1)


def test_control_batches_are_skipped_unless_requested(form: Form) -> None:
    data = batch() + batch(base_offset=1, attributes=CONTROL) + batch(base_offset=2)

    assert offsets(form, data) == [0, 2]
    assert offsets(form, data, with_control=True) == [0, 1, 2]


def test_an_empty_buffer_has_no_records(form: Form) -> None:
    assert read(form, b"") == []


def test_any_contiguous_buffer_is_accepted(form: Form) -> None:
    data = bytes(batch())

    for source in (data, bytearray(data), memoryview(data), array.array("B", data)):
        assert read(form, source) == [(0, 0, False, b"k", b"v", ())]
    assert read(form, memoryview(data + bytes(6)).cast("I")[:0]) == []
    with pytest.raises(TypeError):
        form.reader.RecordReader("text")


@pytest.mark.parametrize("from_offset", [1 << 63, -(1 << 63) - 1])
def test_an_offset_of_more_than_64_bits_is_an_overflow_error(form: Form, from_offset: int) -> None:
    with pytest.raises(OverflowError):
        form.reader.RecordReader(b"", from_offset)


def test_names_of_headers_are_text_and_values_may_be_null(form: Form) -> None:
    pairs = [("", b""), ("nämé", None), ("日本", b"\xff"), ("same", b"1"), ("same", b"2")]

    assert read(form, built(form, [(0, None, None, pairs)]))[0][5] == tuple(pairs)


def test_null_and_empty_are_different(form: Form) -> None:
    rows = [(0, None, b"", []), (0, b"", None, [])]

    assert [row[3:5] for row in read(form, built(form, rows))] == [(None, b""), (b"", None)]


def test_a_readers_error_is_raised_again(form: Form) -> None:
    reader = form.reader.RecordReader(batch(record(0) + record(1, key=b"x" * 9, length=8) + record(2), 3))

    assert next(reader).offset == 0
    for _ in range(3):
        with pytest.raises(CorruptMessage, match="exceeds its record"):
            next(reader)


def test_a_reader_stops_at_a_corrupt_batch(form: Form) -> None:
    broken = batch(base_offset=1)
    broken[-1] ^= 1
    reader = form.reader.RecordReader(batch() + broken)

    assert next(reader).offset == 0
    for _ in range(3):
        with pytest.raises(CorruptMessage, match="checksum"):
            next(reader)


@pytest.mark.parametrize(
    "broken",
    [
        batch(b"garbage", base_offset=1, attributes=ZSTD),
        batch(record(), 9, base_offset=1),
        batch(record() + b"more", base_offset=1),
        batch(record(), base_offset=1, attributes=7),
    ],
)
def test_a_batch_that_does_not_decompress_is_not_skipped(form: Form, broken: bytearray) -> None:
    reader = form.reader.RecordReader(batch() + broken + batch(base_offset=2))

    assert next(reader).offset == 0
    for _ in range(3):
        with pytest.raises((CorruptMessage, UnsupportedCompressionType)):
            list(reader)


def test_a_reader_that_is_done_stays_done(form: Form) -> None:
    reader = form.reader.RecordReader(batch())

    assert iter(reader) is reader
    assert len(list(reader)) == 1
    assert list(reader) == []
    assert next(reader, None) is None


def test_a_reader_constructed_directly_does_not_crash(form: Form) -> None:
    reader = form.reader.RecordReader.__new__(form.reader.RecordReader)

    with pytest.raises(TypeError):
        next(reader)


def test_the_source_is_held_while_it_is_read_and_released_after(form: Form) -> None:
    source = batch()
    reader = form.reader.RecordReader(source)
    first = next(reader)

    assert not is_released(source)
    del reader
    assert is_released(source)
    assert first.value == b"v"


@pytest.mark.parametrize("codec", [NONE, ZSTD])
def test_a_source_that_changes_under_the_reader_is_at_worst_an_error(form: Form, codec: int) -> None:
    source = built(form, [(i, b"key", b"value", [("h", b"1")]) for i in range(50)], codec)
    for position in range(61, len(source)):
        reader = form.reader.RecordReader(source)
        next(reader)
        source[position] ^= 0xFF
        with suppress(CorruptMessage):
            list(reader)
        source[position] ^= 0xFF
        del reader


def test_threads_that_share_a_reader_get_each_record_or_an_error_but_no_crash(form: Form) -> None:
    rows = [(i, b"k", b"v" * 50, [("h", b"1")]) for i in range(2000)]
    reader = form.reader.RecordReader(b"".join(bytes(built(form, rows, codec)) for codec in CODECS))
    counts: list[int] = []

    def run() -> None:
        count = 0
        # As plain Python any error is possible if two threads advance at once.
        with suppress(Exception):
            for each in reader:
                count += len(each.headers)
        counts.append(count)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(counts) == 4


def test_reentrant_reading_is_at_worst_an_error(form: Form) -> None:
    """Python may collect garbage whenever a tuple is made, and a finaliser may do anything."""
    rows = [(i, b"k", b"v", [(f"h{j}", b"1") for j in range(5)]) for i in range(50)]
    reader = form.reader.RecordReader(built(form, rows))

    class Reads:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            with suppress(CorruptMessage):
                next(reader, None)

    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(1)
    try:
        while True:
            Reads()
            try:
                if next(reader, None) is None:
                    break
            except CorruptMessage:
                pass
    finally:
        gc.set_threshold(*thresholds)
        gc.collect()
        gc.unfreeze()


class TestTake:
    def test_take_returns_the_requested_number_and_fewer_at_the_end(self, form: Form) -> None:
        reader = form.reader.RecordReader(batch(record(0) + record(1), 2) + batch(base_offset=2))

        assert [[each.offset for each in reader.take(2)] for _ in range(3)] == [[0, 1], [2], []]

    def test_take_continues_where_iteration_stopped(self, form: Form) -> None:
        reader = form.reader.RecordReader(batch(record(0) + record(1) + record(2), 3))

        assert next(reader).offset == 0
        assert [each.offset for each in reader.take(1)] == [1]
        assert [each.offset for each in reader] == [2]

    @pytest.mark.parametrize("count", [0, -1])
    def test_take_zero_returns_nothing(self, form: Form, count: int) -> None:
        reader = form.reader.RecordReader(batch())

        assert reader.take(count) == []
        assert len(reader.take(1)) == 1

    def test_records_before_an_error_are_returned_first(self, form: Form) -> None:
        broken = batch(base_offset=2)
        broken[-1] ^= 1
        reader = form.reader.RecordReader(batch(record(0) + record(1), 2) + broken)

        assert [each.offset for each in reader.take(10)] == [0, 1]
        for _ in range(2):
            with pytest.raises(CorruptMessage, match="checksum"):
                reader.take(10)

    def test_a_reader_is_done_with_its_last_record(self, form: Form) -> None:
        reader = form.reader.RecordReader(batch() + batch(record(0) + record(1), 2, base_offset=1))

        is_done_after = []
        while reader.take(1):
            is_done_after.append(reader.is_done)

        assert is_done_after == [False, False, True]
        assert form.reader.RecordReader(b"").is_done

    def test_a_reader_is_not_done_while_an_error_is_to_come(self, form: Form) -> None:
        reader = form.reader.RecordReader(batch(record(0) + b"more"))

        assert len(reader.take(1)) == 1
        assert not reader.is_done
        with pytest.raises(CorruptMessage, match="after the last record"):
            reader.take(1)


class TestDeserializers:
    def test_keys_and_values_are_deserialized(self, form: Form) -> None:
        data = built(form, [(0, b"a", b"1", []), (0, b"b", b"2", [])])

        read = form.reader.RecordReader(data, key_deserializer=bytes.decode, value_deserializer=int).take(2)

        assert [(each.key, each.value) for each in read] == [("a", 1), ("b", 2)]

    def test_null_stays_null(self, form: Form) -> None:
        data = built(form, [(0, None, None, [])])

        [read] = form.reader.RecordReader(data, key_deserializer=bytes.decode, value_deserializer=int)

        assert (read.key, read.value) == (None, None)

    def test_a_record_that_fails_to_deserialize_is_named_and_retried(self, form: Form) -> None:
        data = batch(record(0, value=b"1") + record(3, value=b"x", headers=[(b"h", b"1")]), 2, last_offset_delta=3)
        reader = form.reader.RecordReader(data, value_deserializer=int)

        assert [each.value for each in reader.take(5)] == [1]
        for _ in range(2):
            with pytest.raises(ValueError, match="invalid literal"):
                reader.take(5)
            assert reader.offset == 3

    def test_a_failed_record_can_be_read_later(self, form: Form) -> None:
        answers = iter([ValueError("not now"), "now"])

        def sometimes(_: bytes) -> str:
            answer = next(answers)
            if isinstance(answer, ValueError):
                raise answer
            return answer  # type: ignore[return-value]

        reader = form.reader.RecordReader(batch(record(0, value=b"x")), value_deserializer=sometimes)
        with pytest.raises(ValueError, match="not now"):
            next(reader)

        assert [each.value for each in reader] == ["now"]


def test_records_have_topic_partition_and_offset(form: Form) -> None:
    [read] = form.reader.RecordReader(batch(), topic="orders", partition=3)

    assert (read.topic, read.partition) == ("orders", 3)
    assert repr(read) == "Record(topic='orders', partition=3, offset=0, key=b'k', value=b'v')"
    assert read != next(form.reader.RecordReader(batch(), topic="orders", partition=4))
    assert pickle.loads(pickle.dumps(read)) == read  # noqa: S301


def test_checksum_validation_can_be_disabled(form: Form) -> None:
    data = batch(record(value=b"v"))
    data[-2] ^= 1

    assert [each.value for each in form.reader.RecordReader(data, check_crcs=False)] == [b"w"]
    assert form.decode_columns.decode_columns(data, check_crcs=False).count == 1
    with pytest.raises(CorruptMessage, match="checksum"):
        form.decode_columns.decode_columns(data)


def test_a_batch_has_to_be_whole_even_without_its_checksum(form: Form) -> None:
    data = batch()[:-1]

    with pytest.raises(CorruptMessage, match="truncated to 69"):
        list(form.reader.RecordReader(data, check_crcs=False))
    with pytest.raises(CorruptMessage, match="truncated to 69"):
        form.decode_columns.decode_columns(data, check_crcs=False)


class TestRecord:
    @staticmethod
    def one(form: Form, **changes: Any) -> Any:
        given = {"timestamp_delta": 5, "key": b"k", "value": b"v", "headers": [(b"h", b"1")]}
        return next(form.reader.RecordReader(batch(record(**(given | changes)), base_offset=7)))

    def test_equal_records_are_equal_and_have_one_hash(self, form: Form) -> None:
        assert self.one(form) == self.one(form)
        assert hash(self.one(form)) == hash(self.one(form))
        assert len({self.one(form), self.one(form)}) == 1

    @pytest.mark.parametrize(
        "change", [{"timestamp_delta": 6}, {"key": None}, {"value": b""}, {"headers": []}, {"headers": [(b"h", None)]}]
    )
    def test_every_field_makes_a_difference(self, form: Form, change: dict[str, Any]) -> None:
        assert self.one(form) != self.one(form, **change)

    def test_a_record_equals_nothing_else(self, form: Form) -> None:
        one = self.one(form)

        assert one != fields(one)
        assert one != None  # noqa: E711
        assert (one == object()) is False
        with pytest.raises(TypeError):
            one < one  # noqa: B015, PLR0124

    def test_the_repr_of_a_record_shows_its_main_fields(self, form: Form) -> None:
        assert repr(self.one(form)) == "Record(offset=7, key=b'k', value=b'v')"

    def test_a_record_is_pickled_and_copied(self, form: Form) -> None:
        one = self.one(form)

        assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301
        assert copy.deepcopy(one) == copy.copy(one) == one

    def test_a_record_outlives_its_source(self, form: Form) -> None:
        source = bytearray(batch(record(key=b"kept", value=b"too")))
        one = next(form.reader.RecordReader(source))
        source[:] = bytes(len(source))

        assert (one.key, one.value) == (b"kept", b"too")

    def test_a_record_constructed_directly_does_not_crash(self, form: Form) -> None:
        empty = form.reader.Record.__new__(form.reader.Record)

        assert empty == form.reader.Record.__new__(form.reader.Record)
        assert isinstance(hash(empty), int)
        assert repr(empty).startswith("Record(")
