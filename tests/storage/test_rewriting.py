from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.keys import KeyRing
from ottla.records.control import EndMarker
from ottla.storage import inspect
from ottla.storage.retention import delete_expired
from ottla.storage.rewrites.rewriting import REWRITING, put_in_place, rewrites_due

from .encrypting import ONE_KEY, TWO_KEYS, cipher, files_with
from .making import NOW, Producing, batch, offset_for_timestamp, read_all, read_steps

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import OpenPartition
    from .making import Partition

MARKER = b"the-marker-that-nobody-may-find"


def fill(partition: Partition, count: int = 12) -> bytes:
    """Several segments, an aborted transaction among them; what they hold."""
    log = partition.log
    for number in range(count):
        log.append(batch(MARKER * 6 + b"%d" % number, at=NOW + number, by=Producing(5, 0, number)))
    log.append(batch(MARKER, by=Producing(6, 0, 0, is_transactional=True)))
    log.append_end_marker(6, 0, EndMarker(is_commit=False, coordinator_epoch=1))
    log.append(batch(MARKER * 20))
    assert len(log.segments) > 3
    return read_all(log)


def rewrite_all(partition: Partition, below: int) -> list[bool]:
    done = []
    for rewrite in rewrites_due(partition.log, below):
        rewrite.run()
        done.append(put_in_place(partition.log, rewrite))
    return done


def problems_in(folder: Path, partition: Partition) -> list[object]:
    assert partition.cipher is not None
    files = inspect.segment_files(folder)
    return [problem for file in files for problem in inspect.verify_segment(file, partition.cipher.open)]


def test_a_plain_log_is_encrypted_while_it_is_used(partition: OpenPartition) -> None:
    changing = partition(segment_bytes=1024)
    before = fill(changing)
    aborted = changing.log.aborted_transactions(0, 100)
    changing.stop()
    changing.cipher = cipher()
    log = changing.reopen_clean()
    assert files_with(MARKER, changing.folder)

    done = rewrite_all(changing, 1)

    assert len(done) > 3
    assert all(done)
    assert files_with(MARKER, changing.folder) == []
    assert changing.names(".log") == []
    assert read_all(log) == before
    assert log.aborted_transactions(0, 100) == aborted
    assert rewrites_due(log, 1) == []
    changing.stop()
    assert problems_in(changing.folder, changing) == []
    log = changing.reopen_clean()
    assert read_all(log) == before
    assert log.aborted_transactions(0, 100) == aborted
    found = offset_for_timestamp(log, NOW + 7)
    assert found is not None
    assert found.offset == 7


def test_re_encrypted_data_is_readable_without_the_old_key(partition: OpenPartition) -> None:
    sealing = cipher(ONE_KEY)
    changing = partition(cipher=sealing, segment_bytes=1024)
    before = fill(changing)
    sealing._sealer.use(TWO_KEYS)

    assert all(rewrite_all(changing, 2))
    changing.cipher = cipher(KeyRing({2: TWO_KEYS.keys[2]}))

    assert read_all(changing.reopen_unclean(0)) == before
    assert rewrites_due(changing.log, 2) == []


def test_segments_with_the_current_key_are_not_rewritten(partition: OpenPartition) -> None:
    sealing = cipher(ONE_KEY)
    changing = partition(cipher=sealing, segment_bytes=1024)
    fill(changing)
    sealing._sealer.use(TWO_KEYS)
    changing.log.roll()
    changing.log.append(batch(b"new", size=900))
    changing.log.append(batch(b"new", size=900))

    due = [rewrite.base_offset for rewrite in rewrites_due(changing.log, 2)]

    assert due == [segment.base_offset for segment in changing.log.segments[: len(due)]]
    assert len(due) == len(changing.log.segments) - 2


def test_a_segment_that_is_deleted_meanwhile_does_not_come_back(partition: OpenPartition) -> None:
    changing = partition(cipher=cipher(TWO_KEYS), segment_bytes=1024, retention_bytes=1)
    fill(changing)
    [first, *_] = rewrites_due(changing.log, 3)
    first.run()
    assert changing.names(".cleaned")

    delete_expired(changing.log, NOW)

    assert not put_in_place(changing.log, first)
    assert changing.names(".cleaned") == []
    assert first.segments[0].path.name not in changing.names()


def test_a_damaged_segment_is_reported_and_kept(partition: OpenPartition) -> None:
    changing = partition(segment_bytes=1024)
    fill(changing)
    changing.stop()
    changing.cipher = cipher()
    path = changing.folder / "00000000000000000000.log"
    damaged = bytearray(path.read_bytes())
    damaged[100] ^= 1
    path.write_bytes(damaged)
    changing.reopen_clean()

    done = rewrite_all(changing, 1)

    assert done[0] is False
    assert all(done[1:])
    assert path.read_bytes() == damaged
    assert changing.names(".cleaned") == []


def test_reading_goes_on_across_a_segment_that_was_replaced(partition: OpenPartition) -> None:
    changing = partition(cipher=cipher(TWO_KEYS), segment_bytes=1024, open_files=2)
    fill(changing)
    before = list(read_steps(changing.log, 0, 1))
    reading = read_steps(changing.log, 0, 1)
    begun = [next(reading) for _ in range(4)]

    assert all(rewrite_all(changing, 3))

    assert [*begun, *reading] == before


@pytest.mark.parametrize("has_cleaned", [True, False])
def test_leftovers_of_a_killed_rewrite_are_removed(partition: OpenPartition, *, has_cleaned: bool) -> None:
    changing = partition(cipher=cipher(TWO_KEYS), segment_bytes=1024)
    before = fill(changing)
    [first, *_] = rewrites_due(changing.log, 3)
    if has_cleaned:
        first.run()
    else:
        (changing.folder / REWRITING).mkdir()
        (changing.folder / REWRITING / "00000000000000000000.elog").write_bytes(b"half")

    log = changing.reopen_unclean(0)

    assert read_all(log) == before
    assert changing.names(".cleaned") == []
    assert changing.names(".tmp") == []


def test_a_rewrite_of_a_deleted_log_is_discarded(partition: OpenPartition) -> None:
    """Its folder may by now be that of a new topic with the same name."""
    changing = partition(cipher=cipher(TWO_KEYS), segment_bytes=1024)
    before = fill(changing)
    [first, *_] = rewrites_due(changing.log, 3)
    log = changing.log
    log.abandon()
    changing.reopen_unclean(0)
    first.run()

    assert not put_in_place(log, first)

    assert changing.names(".cleaned") == []
    assert read_all(changing.log) == before
