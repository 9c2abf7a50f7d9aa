"""Compaction of batches, compared with a reference: the last record of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fuzz.forms import load_forms
from hypothesis import given
from hypothesis import strategies as st
from tests.records.making import NONE, ZSTD, record
from tests.records.making import batch as made_batch

from ottla.core.errors import CorruptMessage

if TYPE_CHECKING:
    from fuzz.forms import Form

NOW_MS = 1_800_000_000_000
RETENTION_MS = 86_400_000
ROOM = 1 << 20

Row = tuple[bytes | None, bytes | None, int]

rows = st.lists(
    st.tuples(
        st.none() | st.sampled_from([b"", b"a", b"b", b"c", b"d" * 40]),
        st.none() | st.binary(max_size=20),
        st.integers(0, 1 << 45),
    ),
    min_size=1,
    max_size=12,
)


def build(form: Form, content: list[Row], base_offset: int = 0, codec: int = NONE) -> memoryview:
    builder = form.encode.BatchBuilder(codec)
    for key, value, timestamp in content:
        builder.append(timestamp, key, value, [("h", b"x")])
    batch = builder.build()
    form.batch.place(batch, 0, base_offset, 3)
    return memoryview(batch)


def read(form: Form, batch: Any) -> list[tuple[Any, ...]]:
    return [(r.offset, r.key, r.value, r.timestamp, r.headers) for r in form.reader.RecordReader(batch)]


def noted(form: Form, batches: list[memoryview]) -> Any:
    keys = form.key_offsets.KeyOffsets(ROOM)
    for batch in batches:
        assert form.compaction.note_batch(keys, batch, form.batch.read_header(batch))
    return keys


def compact(form: Form, batch: memoryview, keys: Any, now_ms: int = NOW_MS) -> Any:
    rule = form.compaction.TombstoneRule(now_ms, RETENTION_MS)
    left = form.compaction.compacted(batch, form.batch.check_batch(batch), keys, rule)
    # The result is valid until the next batch.
    return left if left is None or left is batch else bytearray(left)


@pytest.mark.parametrize("form", load_forms(), ids=lambda form: form.name)
def test_compacted_batches_reuse_memory(form: Form) -> None:
    """New memory is zeroed while holding the GIL, and clients would wait for that."""
    batches = [build(form, [(b"a", bytes(5000), 1), (key, bytes(5000), 2), (b"a", b"", 3)]) for key in (b"b", b"c")]
    keys = noted(form, batches)
    rule = form.compaction.TombstoneRule(NOW_MS, RETENTION_MS)
    left = [form.compaction.compacted(batch, form.batch.check_batch(batch), keys, rule) for batch in batches]
    assert left[0].obj is left[1].obj


@pytest.mark.parametrize("form", load_forms(), ids=lambda form: form.name)
@given(first=rows, second=rows, codec=st.sampled_from([NONE, ZSTD]))
def test_the_last_record_of_each_key_is_kept_unchanged(
    form: Form, first: list[Row], second: list[Row], codec: int
) -> None:
    batches = [build(form, first, 10, codec), build(form, second, 10 + len(first), codec)]
    keys = noted(form, batches)
    last = {row[1]: row for batch in batches for row in read(form, batch) if row[1] is not None}

    left = [compact(form, batch, keys) for batch in batches]

    assert [row for batch in left if batch is not None for row in read(form, batch)] == sorted(last.values())
    assert len(keys) == len(last)
    for before, after in zip(batches, left, strict=True):
        if after is not None:
            old, new = form.batch.read_header(before), form.batch.check_batch(after)
            assert (new.base_offset, new.last_offset) == (old.base_offset, old.last_offset)
            assert (new.leader_epoch, new.compression, new.size) == (3, codec, len(after))
            assert new.max_timestamp == max(row[3] for row in read(form, after))


def test_a_batch_that_loses_nothing_is_the_same_bytes(form: Form) -> None:
    batch = build(form, [(b"a", b"1", 5), (b"b", b"2", 6)])
    assert compact(form, batch, noted(form, [batch])) is batch


def test_tombstones_are_kept_until_their_horizon(form: Form) -> None:
    batch = build(form, [(b"a", b"1", 5), (b"a", None, 6), (b"b", b"2", 7)])
    keys = noted(form, [batch])

    met = memoryview(compact(form, batch, keys))
    header = form.batch.check_batch(met)
    horizon = form.compaction.delete_horizon(header)
    assert horizon == NOW_MS + RETENTION_MS
    assert [row[:4] for row in read(form, met)] == [(1, b"a", None, 6), (2, b"b", b"2", 7)]
    assert compact(form, met, keys, horizon - 1) is met

    after = compact(form, met, keys, horizon)
    assert [row[:4] for row in read(form, after)] == [(2, b"b", b"2", 7)]
    assert form.compaction.delete_horizon(form.batch.check_batch(after)) == horizon


def test_tombstones_are_kept_beyond_their_horizon_while_a_replica_may_lack_them(form: Form) -> None:
    batch = build(form, [(b"a", b"1", 5), (b"a", None, 6)])
    keys = noted(form, [batch])
    met = memoryview(compact(form, batch, keys))

    rule = form.compaction.TombstoneRule(NOW_MS + 2 * RETENTION_MS, RETENTION_MS, may_remove=False)
    assert form.compaction.compacted(met, form.batch.check_batch(met), keys, rule) is met
    assert compact(form, met, keys, rule.now_ms) is None


def test_a_batch_of_superseded_and_keyless_records_is_removed(form: Form) -> None:
    old = build(form, [(b"a", b"1", 5), (None, b"x", 6)])
    new = build(form, [(b"a", b"2", 7)], 2)
    assert compact(form, old, noted(form, [old, new])) is None


def test_a_producers_last_batch_keeps_its_sequence(form: Form) -> None:
    builder = form.encode.BatchBuilder(ZSTD)
    for number in range(3):
        builder.append(100 + number, b"k", b"v")
    batch = memoryview(builder.build(producer_id=7, producer_epoch=2, base_sequence=40))
    header = form.batch.check_batch(form.compaction.emptied(batch))
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (7, 2, 40, 42)
    assert (header.record_count, header.last_offset, header.max_timestamp, header.size) == (0, 2, 102, 61)
    assert read(form, form.compaction.emptied(batch)) == []


def test_a_marker_keeps_its_record_when_it_gets_a_horizon(form: Form) -> None:
    marker = form.control.EndMarker(is_commit=False, coordinator_epoch=9)
    batch = memoryview(form.control.build_end_marker(marker, 7, 2, 1_700_000_000_000))
    rule = form.compaction.TombstoneRule(NOW_MS, RETENTION_MS)
    told = form.compaction.with_horizon(batch, form.batch.read_header(batch), rule)
    assert form.control.read_end_marker(told) == marker
    assert form.compaction.delete_horizon(form.batch.check_batch(told)) == rule.horizon_ms
    assert [r.timestamp for r in form.reader.RecordReader(told, with_control=True)] == [1_700_000_000_000]


def test_without_room_for_keys_it_stops_with_a_valid_map(form: Form) -> None:
    keys = form.key_offsets.KeyOffsets(4096)
    batch = build(form, [(b"%d" % number, b"", 0) for number in range(1000)])
    assert not form.compaction.note_batch(keys, batch, form.batch.read_header(batch))
    assert 10 < len(keys) < 1000
    assert keys.offset_of(b"0") == 0
    assert keys.offset_of(b"999") == -1
    left = compact(form, batch, keys)
    assert len(read(form, left)) == 1000


def test_many_keys_are_distinguished(form: Form) -> None:
    keys = form.key_offsets.KeyOffsets(1 << 20)
    batch = build(form, [(b"%d" % (number % 3000), b"", 0) for number in range(9000)])
    assert form.compaction.note_batch(keys, batch, form.batch.read_header(batch))
    assert len(keys) == 3000
    assert all(keys.offset_of(b"%d" % number) == 6000 + number for number in range(3000))


def test_records_without_a_key_are_detected(form: Form) -> None:
    for content, expected in (([(b"a", b"", 0), (None, b"", 0)], True), ([(b"", b"", 0)], False)):
        batch = build(form, content, codec=ZSTD)
        assert form.compaction.has_record_without_key(batch, form.batch.read_header(batch)) is expected


@pytest.mark.parametrize(
    "payload",
    [
        record(length=500),
        record(length=0),
        record(length=-4),
        record()[:3],
        b"\x80" * 12,
        b"\x0e\x00\x00\x00\xff\xff\xff\x7f",
        b"\x02\x00",
    ],
    ids=["too long", "empty", "negative", "cut off", "endless number", "key past the end", "no room for fields"],
)
def test_inconsistent_records_are_refused(form: Form, payload: bytes) -> None:
    batch = memoryview(made_batch(payload))
    header = form.batch.read_header(batch)
    keys = form.key_offsets.KeyOffsets(ROOM)
    for work in (
        lambda: form.compaction.note_batch(keys, batch, header),
        lambda: compact(form, batch, keys),
        lambda: form.compaction.has_record_without_key(batch, header),
    ):
        with pytest.raises(CorruptMessage):
            work()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("form", load_forms(), ids=lambda form: form.name)
@given(payload=st.binary(max_size=60))
def test_random_bytes_are_handled(form: Form, payload: bytes) -> None:
    batch = memoryview(made_batch(payload))
    keys = form.key_offsets.KeyOffsets(ROOM)
    try:
        form.compaction.note_batch(keys, batch, form.batch.read_header(batch))
        compact(form, batch, keys)
    except CorruptMessage:
        pass
