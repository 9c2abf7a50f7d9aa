"""A log after compaction, compared with a reference: the last committed record of each key at its offset."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import CorruptMessage, InvalidRecord
from ottla.records.compaction import TombstoneRule
from ottla.records.control import EndMarker
from ottla.records.encode import BatchBuilder
from ottla.records.reader import RecordReader
from ottla.storage.retention import delete_expired
from ottla.storage.rewrites.compaction import Budget, Compaction, CompactionRule, Dirty, find_dirty
from ottla.storage.rewrites.rewriting import put_in_place

from .encrypting import ONE_KEY, TWO_KEYS, cipher, files_with
from .making import NOBODY, NOW, Producing, headers, read_all, values

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.storage.partition_log import PartitionLog

    from .making import Partition

    OpenPartition = Callable[..., Partition]

DAY_MS = 86_400_000
RULE = CompactionRule(min_dirty_ratio=0.5, min_lag_ms=0, max_lag_ms=1 << 60, delete_retention_ms=DAY_MS)
AMPLE = Budget(memory_bytes=1 << 20)

Left = dict[bytes, tuple[int, bytes]]


def keyed(*rows: tuple[bytes | None, bytes | None], by: Producing = NOBODY, at: int = NOW) -> bytearray:
    builder = BatchBuilder()
    for key, value in rows:
        builder.append(at, key, value)
    return builder.build(
        producer_id=by.id, producer_epoch=by.epoch, base_sequence=by.sequence, is_transactional=by.is_transactional
    )


def compact(
    log: PartitionLog,
    compacted_until: int = 0,
    now_ms: int = NOW,
    budget: Budget = AMPLE,
    *,
    may_remove: bool = True,
) -> int:
    """Compact everything possible; returns the compacted position."""
    dirty = find_dirty(log, compacted_until, log.last_stable_offset, RULE, now_ms)
    compaction = Compaction(log, dirty, TombstoneRule(now_ms, DAY_MS, may_remove), budget)
    compaction.note_keys()
    assert compaction.error is None
    for rewrite in compaction.rewrites():
        rewrite.run()
        assert rewrite.error is None
        assert put_in_place(log, rewrite)
    return compaction.until


def committed(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """The records read with read_committed."""
    aborted = log.aborted_transactions(0, log.next_offset)
    data = read_all(log)
    found = []
    at = 0
    for header in headers(data):
        batch = memoryview(data)[at : at + header.size]
        at += header.size
        is_aborted = header.is_transactional and any(
            one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset
            for one in aborted
        )
        if not header.is_control and not is_aborted:
            found += [(record.offset, record.key, record.value) for record in RecordReader(batch)]
    return found


def last_of_each(rows: list[tuple[int, bytes | None, bytes | None]]) -> dict[bytes | None, tuple[int, bytes | None]]:
    return {key: (offset, value) for offset, key, value in rows}


def test_only_the_last_record_of_each_key_is_left(partition: OpenPartition) -> None:
    log = partition(cleanup_policy="compact").log
    log.append(keyed((b"a", b"1"), (b"b", b"1")))
    log.append(keyed((b"a", b"2")))
    log.roll()
    log.append(keyed((b"c", b"1")))
    assert compact(log) == 3
    assert committed(log) == [(1, b"b", b"1"), (2, b"a", b"2"), (3, b"c", b"1")]
    assert (log.start_offset, log.next_offset) == (0, 4)


def test_the_active_segment_is_not_compacted_but_its_records_supersede_others(partition: OpenPartition) -> None:
    log = partition(cleanup_policy="compact").log
    log.append(keyed((b"a", b"1")))
    log.roll()
    log.append(keyed((b"a", b"2")))
    assert find_dirty(log, 0, log.next_offset, RULE, NOW).until == 1
    assert compact(log) == 1
    assert [value for _, _, value in committed(log)] == [b"1", b"2"]
    log.roll()
    log.append(keyed((b"b", b"1")))
    assert compact(log, 1) == 2
    assert committed(log) == [(1, b"a", b"2"), (2, b"b", b"1")]


def test_small_segments_become_one(partition: OpenPartition) -> None:
    log = partition(cleanup_policy="compact").log
    for number in range(5):
        log.append(keyed((b"%d" % number, b"x")))
        log.roll()
    compact(log)
    assert [segment.base_offset for segment in log.segments] == [0, 5]
    assert len(committed(log)) == 5


def test_a_log_with_more_keys_than_fit_takes_several_passes(partition: OpenPartition) -> None:
    log = partition(cleanup_policy="compact").log
    for _ in range(2):
        for number in range(0, 3000, 100):
            log.append(keyed(*((b"key-%d" % (number + one), b"x") for one in range(100))))
    log.roll()
    expected = last_of_each(committed(log))
    until, passes = 0, 0
    while until < 6000:
        until = compact(log, until, budget=Budget(64 << 10))
        passes += 1
    assert passes > 3
    assert last_of_each(committed(log)) == expected
    assert len(committed(log)) == 3000


def test_young_or_unstable_records_are_not_compacted(partition: OpenPartition) -> None:
    log = partition(cleanup_policy="compact").log
    log.append(keyed((b"a", b"1"), at=NOW - 5000))
    log.roll()
    log.append(keyed((b"a", b"2"), at=NOW))
    log.roll()
    lagging = RULE._replace(min_lag_ms=1000)
    assert find_dirty(log, 0, log.next_offset, lagging, NOW).until == 1
    assert find_dirty(log, 0, log.next_offset, lagging, NOW + 2000).until == 2
    assert find_dirty(log, 0, 1, RULE, NOW).until == 1
    assert find_dirty(log, 0, 0, RULE, NOW).until == 0


def test_it_is_due_when_enough_is_dirty_or_has_been_for_too_long() -> None:
    half, little = Dirty(5, 9, 0.5, is_overdue=False), Dirty(5, 9, 0.1, is_overdue=False)
    assert half.is_due(RULE)
    assert not little.is_due(RULE)
    assert little._replace(is_overdue=True).is_due(RULE)
    assert not Dirty(5, 5, 1.0, is_overdue=True).is_due(RULE)


def test_an_impossible_checkpoint_is_ignored(partition: OpenPartition) -> None:
    log = partition(cleanup_policy="compact").log
    log.append(keyed((b"a", b"1")))
    log.roll()
    assert find_dirty(log, 99, log.next_offset, RULE, NOW).first == 0


def test_tombstones_are_deleted_after_their_retention(partition: OpenPartition) -> None:
    log = partition(cleanup_policy="compact").log
    log.append(keyed((b"a", b"1")))
    log.append(keyed((b"a", None)))
    log.roll()
    until = compact(log)
    assert committed(log) == [(1, b"a", None)]
    log.append(keyed((b"b", b"1")))
    log.roll()
    until = compact(log, until, NOW + DAY_MS - 1)
    assert committed(log) == [(1, b"a", None), (2, b"b", b"1")]
    log.append(keyed((b"b", b"2")))
    log.roll()
    compact(log, until, NOW + DAY_MS)
    assert committed(log) == [(3, b"b", b"2")]


def test_a_producer_continues_after_all_its_records_were_superseded(partition: OpenPartition) -> None:
    kept = partition(cleanup_policy="compact")
    kept.log.append(keyed((b"a", b"1"), (b"a", b"2"), by=Producing(7, 0, 0)))
    kept.log.append(keyed((b"a", b"3")))
    kept.log.roll()
    compact(kept.log)
    for folder_of_snapshot in kept.folder.glob("*.snapshot"):
        folder_of_snapshot.unlink()
    log = kept.reopen_unclean(0)
    assert log.append(keyed((b"a", b"1"), (b"a", b"2"), by=Producing(7, 0, 0))).is_duplicate
    assert not log.append(keyed((b"a", b"4"), by=Producing(7, 0, 2))).is_duplicate


def test_aborted_records_are_removed_and_supersede_nothing(partition: OpenPartition) -> None:
    log = partition(cleanup_policy="compact").log
    log.append(keyed((b"a", b"kept")))
    log.append(keyed((b"a", b"aborted"), by=Producing(7, 0, 0, is_transactional=True)))
    log.append_end_marker(7, 0, EndMarker(is_commit=False, coordinator_epoch=0))
    log.append(keyed((b"b", b"committed"), by=Producing(8, 0, 0, is_transactional=True)))
    log.append_end_marker(8, 0, EndMarker(is_commit=True, coordinator_epoch=0))
    log.roll()
    compact(log)
    assert values(read_all(log)) == [b"kept", b"committed"]
    assert committed(log) == [(0, b"a", b"kept"), (3, b"b", b"committed")]


def test_a_marker_is_kept_while_its_transaction_has_records(partition: OpenPartition) -> None:
    log = partition(cleanup_policy="compact").log
    for sequence in range(2):
        log.append(keyed((b"a", b"%d" % sequence), by=Producing(7, 0, sequence, is_transactional=True)))
        log.append_end_marker(7, 0, EndMarker(is_commit=True, coordinator_epoch=0))
    log.roll()

    def markers() -> list[int]:
        return [header.base_offset for header in headers(read_all(log)) if header.is_control]

    until = compact(log)
    assert markers() == [1, 3]
    log.append(keyed((b"b", b"1")))
    log.roll()
    until = compact(log, until, NOW + DAY_MS, may_remove=False)
    assert markers() == [1, 3], "a replica may lack it"
    log.append(keyed((b"c", b"1")))
    log.roll()
    compact(log, until, NOW + DAY_MS)
    assert markers() == [3]
    assert committed(log) == [(2, b"a", b"1"), (4, b"b", b"1"), (5, b"c", b"1")]


@pytest.mark.parametrize("seed", range(12))
def test_random_logs_are_compacted_correctly_across_restarts(partition: OpenPartition, seed: int) -> None:
    chance = random.Random(seed)
    kept = partition(cleanup_policy="compact", segment_bytes=chance.choice([1500, 4000]))
    sequences = {7: 0, 8: 0}
    until = 0
    now_ms = NOW
    for _ in range(12):
        for _ in range(chance.randrange(1, 25)):
            append_some(kept.log, chance, sequences)
        if chance.random() < 0.5:
            kept.log.roll()
        before = last_of_each(committed(kept.log))
        next_offset = kept.log.next_offset
        now_ms += chance.choice([0, DAY_MS // 2, DAY_MS])
        if find_dirty(kept.log, until, kept.log.last_stable_offset, RULE, now_ms).until > until:
            until = compact(kept.log, until, now_ms)
        must_have(kept.log, before, next_offset)
        if chance.random() < 0.3:
            kept.reopen_clean()
            must_have(kept.log, before, next_offset)
        elif chance.random() < 0.3:
            kept.reopen_unclean(chance.choice([0, kept.log.recovery_point]))
            must_have(kept.log, before, next_offset)
    assert len(committed(kept.log)) < kept.log.next_offset / 2


def append_some(log: PartitionLog, chance: random.Random, sequences: dict[int, int]) -> None:
    rows = [
        (b"%d" % chance.randrange(12), None if chance.random() < 0.2 else chance.randbytes(chance.randrange(60)))
        for _ in range(chance.randrange(1, 4))
    ]
    producer_id = chance.choice([-1, *sequences])
    if producer_id < 0:
        log.append(keyed(*rows))
        return
    by = Producing(producer_id, 0, sequences[producer_id], is_transactional=producer_id == 7)
    log.append(keyed(*rows, by=by))
    sequences[producer_id] += len(rows)
    if producer_id == 7:
        log.append_end_marker(7, 0, EndMarker(is_commit=chance.random() < 0.5, coordinator_epoch=0))


def must_have(log: PartitionLog, expected: dict[bytes | None, tuple[int, bytes | None]], next_offset: int) -> None:
    found = last_of_each(committed(log))
    gone = {key: row for key, row in expected.items() if key not in found}
    assert {key: row for key, row in expected.items() if key in found} == found
    assert all(value is None for _, value in gone.values()), "a record that was not superseded is missing"
    assert log.next_offset == next_offset


def test_a_damaged_batch_stops_it_and_changes_nothing(partition: OpenPartition) -> None:
    log = partition(cleanup_policy="compact").log
    log.append(keyed((b"a", b"1")))
    log.append(keyed((b"a", b"2")))
    log.roll()
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    dirty = find_dirty(log, 0, log.next_offset, RULE, NOW)
    compaction = Compaction(log, dirty, TombstoneRule(NOW, DAY_MS), AMPLE)
    compaction.note_keys()
    assert isinstance(compaction.error, CorruptMessage)
    assert path.read_bytes() == data


def test_segments_deleted_during_compaction_do_not_reappear(partition: OpenPartition) -> None:
    kept = partition(cleanup_policy="compact,delete", retention_ms=1000)
    log = kept.log
    log.append(keyed((b"a", b"1")))
    log.roll()
    log.append(keyed((b"a", b"2"), at=NOW + 10_000))
    compaction = Compaction(log, find_dirty(log, 0, 2, RULE, NOW), TombstoneRule(NOW, DAY_MS), AMPLE)
    compaction.note_keys()
    (rewrite,) = compaction.rewrites()
    rewrite.run()
    assert delete_expired(log, NOW + 10_000)
    assert not put_in_place(log, rewrite)
    assert committed(log) == [(1, b"a", b"2")]
    assert list(kept.folder.glob("*.cleaned")) == []


def test_compaction_can_be_cancelled(partition: OpenPartition) -> None:
    log = partition(cleanup_policy="compact").log
    log.append(keyed((b"a", b"1")))
    log.roll()
    compaction = Compaction(log, find_dirty(log, 0, 1, RULE, NOW), TombstoneRule(NOW, DAY_MS), AMPLE)
    compaction.give_up()
    compaction.note_keys()
    assert str(compaction.error) == "compaction was aborted"


def test_a_compacted_topic_refuses_records_without_a_key(partition: OpenPartition) -> None:
    log = partition(cleanup_policy="compact").log
    with pytest.raises(InvalidRecord, match="must have a key"):
        log.append(keyed((b"a", b"1"), (None, b"2")))
    assert log.next_offset == 0


@pytest.mark.parametrize("was_plain", [False, True])
def test_an_encrypted_log_is_compacted_with_its_newest_key(partition: OpenPartition, *, was_plain: bool) -> None:
    marker = b"the-marker-that-nobody-may-find"
    opened = partition(cleanup_policy="compact", segment_bytes=1024, cipher=None if was_plain else cipher(ONE_KEY))
    for number in range(12):
        opened.log.append(keyed((b"%d" % (number % 3), marker * 5 + b"%d" % number)))
    opened.stop()
    opened.cipher = cipher(TWO_KEYS)
    log = opened.reopen_clean()
    log.append(keyed((marker, marker)))
    log.roll()
    log.append(keyed((b"end", b"")))

    compact(log)

    assert last_of_each(committed(log)) == {
        **{b"%d" % (number % 3): (number, marker * 5 + b"%d" % number) for number in (9, 10, 11)},
        marker: (12, marker),
        b"end": (13, b""),
    }
    assert {segment.oldest_key_id for segment in log.segments} == {2}
    assert files_with(marker, opened.folder) == []
    assert last_of_each(committed(opened.reopen_unclean(0))) == last_of_each(committed(log))
