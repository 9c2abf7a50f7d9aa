"""The batch builder: accepted values, sizes, and use after build."""

from __future__ import annotations

import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from fuzz.forms import load_forms
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.errors import MessageTooLarge

from .making import (
    CONTROL,
    GZIP,
    MAX_INT32,
    MAX_INT64,
    MIN_INT64,
    TRANSACTIONAL,
    ZSTD,
    batch,
    fields,
    forget_peak,
    headers,
    peak_bytes,
    record,
    strings,
)

if TYPE_CHECKING:
    from fuzz.forms import Form

MAX_BATCH_BYTES = MAX_INT32 - 4096

rows = st.lists(st.tuples(st.integers(MIN_INT64, MAX_INT64), strings, strings, headers), min_size=1, max_size=12)


def test_a_batch_has_the_expected_bytes(form: Form) -> None:
    builder = form.encode.BatchBuilder()
    assert builder.append(1000, b"k", b"v", [("nämé", b"1"), ("h", None)])
    assert builder.append(997, None, None)
    assert builder.append(1 << 40, b"", b"w" * 200)

    data = builder.build(base_offset=1 << 50, leader_epoch=3, producer_id=1 << 35, producer_epoch=7, base_sequence=9)

    payload = record(0, 0, b"k", b"v", [("nämé".encode(), b"1"), (b"h", None)])
    payload += record(1, -3, None, None) + record(2, (1 << 40) - 1000, b"", b"w" * 200)
    assert data == batch(
        payload,
        3,
        base_offset=1 << 50,
        leader_epoch=3,
        producer_id=1 << 35,
        producer_epoch=7,
        base_sequence=9,
        base_timestamp=1000,
        max_timestamp=1 << 40,
    )


@given(rows=rows, codec=st.integers(0, 4))
def test_both_forms_build_the_same_bytes(rows: list[Any], codec: int) -> None:
    built = []
    for form in load_forms():
        builder = form.encode.BatchBuilder(codec)
        steps = []
        for row in rows:
            try:
                steps.append(builder.append(*row))
            except OverflowError as refused:
                steps.append(str(refused))
        built.append((steps, builder.build()))

    assert built[0] == built[-1]


@given(rows=rows)
def test_the_running_size_is_exact(form: Form, rows: list[Any]) -> None:
    for count in range(1, len(rows) + 1):
        builder = form.encode.BatchBuilder()
        assert (builder.size, builder.count) == (61, 0)
        for row in rows[:count]:
            try:
                builder.append(*row)
            except OverflowError:
                return
        size = builder.size
        assert builder.count == count
        assert len(builder.build()) == size


def test_a_record_that_would_exceed_the_limit_changes_nothing(form: Form) -> None:
    builder = form.encode.BatchBuilder(max_bytes=100)
    assert builder.append(5, b"k", b"v" * 20)
    before = (builder.size, builder.count, builder.base_timestamp, builder.max_timestamp)

    assert not builder.append(9, b"k", b"v" * 20)

    assert (builder.size, builder.count, builder.base_timestamp, builder.max_timestamp) == before
    assert builder.append(9, b"k", b"v")
    assert [each.offset for each in form.reader.RecordReader(builder.build())] == [0, 1]


def test_the_limit_is_reached_exactly(form: Form) -> None:
    full = 61 + len(record(0)) + len(record(1))

    for limit, is_added in ((full, True), (full - 1, False)):
        builder = form.encode.BatchBuilder(max_bytes=limit)
        assert builder.append(0, b"k", b"v")
        assert builder.append(0, b"k", b"v") is is_added


@pytest.mark.parametrize("max_bytes", [0, 1, 61, -1, -(1 << 70)])
def test_the_first_record_is_accepted_whatever_the_limit(form: Form, max_bytes: int) -> None:
    builder = form.encode.BatchBuilder(max_bytes=max_bytes)

    assert builder.append(0, b"k", b"v" * 1000)
    assert not builder.append(0, None, None)


def test_a_limit_beyond_the_maximum_batch_size_is_lowered(form: Form) -> None:
    assert form.encode.BatchBuilder(max_bytes=1 << 70).max_bytes == MAX_BATCH_BYTES


def test_a_record_larger_than_the_maximum_batch_is_refused_before_it_is_copied(form: Form) -> None:
    huge = bytes(MAX_BATCH_BYTES)  # unwritten pages take no memory
    builder = form.encode.BatchBuilder()
    before = forget_peak()

    for key, value in ((huge, None), (None, huge), (huge, huge)):
        with pytest.raises(MessageTooLarge, match="does not fit into a batch"):
            builder.append(0, key, value)

    assert (builder.size, builder.count) == (61, 0)
    assert peak_bytes() - before < 1 << 20
    assert builder.append(0, b"k", b"v")
    assert not builder.append(0, huge, None)


@pytest.mark.parametrize("compression", [-1, 5, 7, 1 << 40])
def test_there_are_five_compressions(form: Form, compression: int) -> None:
    with pytest.raises(ValueError, match=f"unknown compression type {compression}"):
        form.encode.BatchBuilder(compression)


def test_a_compression_may_be_given_by_name(form: Form) -> None:
    builder = form.encode.BatchBuilder(form.compression.Compression.ZSTD)
    builder.append(0, b"k", b"v" * 1000)

    assert form.batch.check_produced(builder.build()).compression == ZSTD


def test_keys_and_values_are_any_bytes(form: Form) -> None:
    class Special(bytes):
        pass

    builder = form.encode.BatchBuilder()
    for data in (b"ab", bytearray(b"ab"), memoryview(b"ab"), memoryview(b"a-b-")[::2], Special(b"ab")):
        assert builder.append(0, data, data, [("h", data)])
    assert builder.append(0, memoryview(b"abcd").cast("I"), None, [("h", memoryview(b"abcd").cast("I"))])

    read = [fields(each)[3:] for each in form.reader.RecordReader(builder.build())]
    assert read[:5] == [(b"ab", b"ab", (("h", b"ab"),))] * 5
    assert read[5] == (b"abcd", None, (("h", b"abcd"),))


@pytest.mark.parametrize(
    "wrong",
    [
        ("text", None, ()),
        (None, 5, ()),
        (None, None, [("h", "text")]),
        (None, None, [(b"bytes", b"1")]),
        (None, None, [(None, b"1")]),
        (None, None, [5]),
        (None, None, 5),
    ],
)
def test_anything_else_is_refused_and_changes_nothing(form: Form, wrong: tuple[Any, ...]) -> None:
    builder = form.encode.BatchBuilder()

    with pytest.raises(TypeError):
        builder.append(0, *wrong)
    assert (builder.size, builder.count) == (61, 0)


def test_a_header_name_that_is_not_valid_utf8_is_refused(form: Form) -> None:
    builder = form.encode.BatchBuilder()

    with pytest.raises(UnicodeEncodeError):
        builder.append(0, None, None, [("\ud800", b"1")])
    assert builder.count == 0


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_headers_come_in_any_order_of_pairs(form: Form, kind: Any) -> None:
    builder = form.encode.BatchBuilder()

    assert builder.append(0, None, None, kind([("b", b"1"), ("a", None)]))

    [read] = form.reader.RecordReader(builder.build())
    assert read.headers == (("b", b"1"), ("a", None))


def test_headers_that_change_during_the_append_are_counted_once(form: Form) -> None:
    pairs: list[Any] = []

    class Sly(str):
        __slots__ = ()

        def encode(self, *_: object) -> bytes:  # type: ignore[override]
            pairs.append(("more", b""))
            return b"sly"

    pairs.append((Sly("name"), b"1"))
    builder = form.encode.BatchBuilder()
    builder.append(0, None, None, pairs)

    [read] = form.reader.RecordReader(builder.build())
    assert read.headers == (("sly", b"1"),)


@pytest.mark.parametrize("timestamp", [1 << 63, -(1 << 63) - 1, 1 << 100])
def test_a_timestamp_of_more_than_64_bits_is_refused(form: Form, timestamp: int) -> None:
    builder = form.encode.BatchBuilder()

    with pytest.raises(OverflowError):
        builder.append(timestamp, None, None)
    assert builder.count == 0


def test_a_timestamp_is_a_whole_number(form: Form) -> None:
    with pytest.raises(TypeError):
        form.encode.BatchBuilder().append("1000", None, None)
    with pytest.raises(TypeError):
        form.encode.BatchBuilder().append(1.5, None, None)


@pytest.mark.parametrize(
    ("first", "second"),
    [(MIN_INT64, 0), (MIN_INT64, MAX_INT64), (MAX_INT64, -2), (MAX_INT64, MIN_INT64), (-1, MAX_INT64), (1, MIN_INT64)],
)
def test_timestamps_too_far_apart_for_64_bits_are_refused(form: Form, first: int, second: int) -> None:
    builder = form.encode.BatchBuilder()
    builder.append(first, None, None)

    with pytest.raises(OverflowError, match="too far apart"):
        builder.append(second, None, None)
    assert builder.count == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [(MIN_INT64, -1), (-1, MIN_INT64), (MAX_INT64, 0), (MAX_INT64, -1), (0, MIN_INT64), (0, MAX_INT64)],
)
def test_timestamps_with_the_largest_difference_are_kept(form: Form, first: int, second: int) -> None:
    builder = form.encode.BatchBuilder()
    builder.append(first, None, None)
    builder.append(second, None, None)

    data = builder.build()

    assert [each.timestamp for each in form.reader.RecordReader(data)] == [first, second]
    header = form.batch.check_produced(data)
    assert (header.base_timestamp, header.max_timestamp) == (first, max(first, second))


def test_the_flags_of_a_batch_are_set(form: Form) -> None:
    builder = form.encode.BatchBuilder(GZIP)
    builder.append(0, b"k", b"v")

    header = form.batch.check_batch(builder.build(is_transactional=True, is_control=True, producer_id=1))

    assert header.attributes == GZIP | TRANSACTIONAL | CONTROL


def test_a_batch_without_records_cannot_be_built(form: Form) -> None:
    with pytest.raises(ValueError, match="without records"):
        form.encode.BatchBuilder().build()


@pytest.mark.parametrize("codec", [0, ZSTD])
def test_a_builder_cannot_be_used_after_build(form: Form, codec: int) -> None:
    builder = form.encode.BatchBuilder(codec)
    builder.append(0, b"k", b"v")
    data = builder.build()
    before = bytes(data)

    with pytest.raises(RuntimeError, match="already built"):
        builder.build()
    with pytest.raises(RuntimeError, match="already built"):
        builder.append(0, b"k", b"v")
    assert data == before
    assert (builder.count, builder.size) == (1, 61 + len(record()))
    data += b"the caller's own now"


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_offset": 1 << 63},
        {"leader_epoch": 1 << 31},
        {"producer_id": 1 << 63},
        {"producer_epoch": 1 << 15},
        {"base_sequence": 1 << 31},
    ],
)
def test_a_builder_can_be_used_after_a_failed_build(form: Form, wrong: dict[str, int]) -> None:
    builder = form.encode.BatchBuilder()
    builder.append(0, b"k", b"v")

    with pytest.raises(struct.error):
        builder.build(**wrong)

    assert builder.append(0, b"k", b"v")
    assert form.batch.check_produced(builder.build()).record_count == 2


@pytest.mark.parametrize("codec", [0, GZIP, ZSTD])
def test_a_concurrent_append_is_refused_or_in_the_batch(form: Form, codec: int) -> None:
    if form.name == "uncompiled":
        pytest.skip("plain Python may change threads in the middle of a record; the class says not to")
    builder = form.encode.BatchBuilder(codec)
    for number in range(2000):
        builder.append(number, b"k", b"%d" % number * 20)
    is_started = threading.Event()
    added = [2000]

    def run() -> None:
        is_started.set()
        with suppress(RuntimeError):
            while True:
                builder.append(0, None, None)
                added[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    is_started.wait()
    data = builder.build()
    thread.join()

    assert sum(1 for _ in form.reader.RecordReader(data)) == form.batch.check_produced(data).record_count == added[0]


def test_a_builder_constructed_directly_does_not_crash(form: Form) -> None:
    builder = form.encode.BatchBuilder.__new__(form.encode.BatchBuilder)

    with pytest.raises((RuntimeError, AttributeError)):
        builder.append(0, b"k", b"v")
    with pytest.raises((RuntimeError, AttributeError)):
        builder.build()


def test_the_buffer_grows_with_records_of_every_size(form: Form) -> None:
    for size in (1, 900, 1000, 1024, 2000, 100_000):
        builder = form.encode.BatchBuilder()
        for number in range(5):
            assert builder.append(number, b"%d" % number, b"v" * size)

        read = list(form.reader.RecordReader(builder.build()))
        assert [(each.key, len(each.value)) for each in read] == [(b"%d" % n, size) for n in range(5)]


def test_restamping_a_batch_does_not_modify_the_original(form: Form) -> None:
    def built(**stamps: int) -> bytearray:
        builder = form.encode.BatchBuilder()
        builder.append(1000, b"k", b"v")
        batch: bytearray = builder.build(**stamps)
        return batch

    old = built(producer_id=1, producer_epoch=2, base_sequence=3)

    new = form.encode.restamped(old, 4, 5, 6)

    assert new == built(producer_id=4, producer_epoch=5, base_sequence=6)
    assert old == built(producer_id=1, producer_epoch=2, base_sequence=3)


def test_a_higher_level_compresses_better(form: Form) -> None:
    def size(level: int | None) -> int:
        builder = form.encode.BatchBuilder(ZSTD, compression_level=level)
        for i in range(2000):
            builder.append(i, None, b"%d" % (i * i * 7919))
        return len(builder.build())

    assert size(19) < size(1)
    assert size(None) == size(3)
