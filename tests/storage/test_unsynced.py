from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ottla.storage.config import LogConfig
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.producers.snapshot import Snapshots
from ottla.storage.producers.state import ProducerStates
from ottla.storage.recovery import LogParts
from ottla.storage.segment_files.segment import Segment
from ottla.storage.unsynced import Unsynced

from .making import open_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ottla.storage.segment_files.open_files import OpenFiles

    Make = Callable[..., tuple[Unsynced, list[Segment]]]


@pytest.fixture
def make(tmp_path: Path, files: OpenFiles) -> Iterator[Make]:
    """This many segments, ten offsets each, of which the last is appended to and none has been synced."""
    made: list[Segment] = []

    def unsynced(count: int, *, is_as_left: bool = False) -> tuple[Unsynced, list[Segment]]:
        made.extend(Segment.create(tmp_path, 10 * number, LogConfig(), files) for number in range(count))
        for full in made[:-1]:
            full.release()
        snapshots, epochs = Snapshots(tmp_path), LeaderEpochs()
        parts = LogParts(made, 10 * count, 0, 0, list(made), ProducerStates(), snapshots, epochs, is_as_left)
        return Unsynced(tmp_path, files, parts), made

    yield unsynced
    for segment in made:
        segment.close()


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: names.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))))
    return names


def test_a_flush_syncs_every_segment_then_what_else_is_asked_for_then_the_folder(
    make: Make, synced: list[str], tmp_path: Path
) -> None:
    unsynced, _ = make(2)
    (tmp_path / "more").touch()
    unsynced.begin_flush(15, [tmp_path / "more"]).run()

    full = [f"{0:020d}{kind}" for kind in (".log", ".index", ".timeindex")]
    assert sorted(synced[:-2]) == sorted([*full, f"{10:020d}.log"])
    assert set(synced[-2:]) == {"more", tmp_path.name}


def test_the_next_one_syncs_only_what_is_appended_to(make: Make, synced: list[str]) -> None:
    unsynced, _ = make(2)
    assert unsynced.has_full_segments
    unsynced.begin_flush(15).run()
    assert not unsynced.has_full_segments
    assert not unsynced.has_new_files
    synced.clear()

    unsynced.begin_flush(18).run()
    assert synced == [f"{10:020d}.log"]


def test_the_folder_of_a_log_that_is_as_it_was_left_need_not_be_synced(make: Make, synced: list[str]) -> None:
    unsynced, _ = make(1, is_as_left=True)
    unsynced.begin_flush(5).run()

    assert synced == [f"{0:020d}.log"]


def test_a_flush_counts_only_after_earlier_ones_do(make: Make) -> None:
    unsynced, _ = make(1)
    first, second = unsynced.begin_flush(5), unsynced.begin_flush(8)
    for flush in (first, second):
        flush.run()

    unsynced.finish_flush(second)
    assert unsynced.recovery_point == 0
    unsynced.finish_flush(first)
    assert unsynced.recovery_point == 8


def test_records_truncated_during_a_flush_are_not_durable(make: Make) -> None:
    unsynced, segments = make(2)
    flush = unsynced.begin_flush(15)
    flush.run()
    segments.pop().unlink()
    unsynced.truncated(segments, 4)

    unsynced.finish_flush(flush)
    assert unsynced.recovery_point == 4


def test_deleted_segments_are_not_synced(make: Make, synced: list[str], tmp_path: Path) -> None:
    unsynced, segments = make(3)
    segments[0].unlink()
    unsynced.keep_only(segments[1:])
    unsynced.begin_flush(25).run()

    assert not [name for name in synced if name.startswith(f"{0:020d}")]
    assert open_in(tmp_path)  # the one that is appended to


def test_many_segments_are_synced_in_several_flushes(make: Make, tmp_path: Path) -> None:
    unsynced, _ = make(40)
    assert not unsynced.fits_one_flush
    points = []
    while unsynced.has_new_files:
        flush = unsynced.begin_flush(400)
        assert len(open_in(tmp_path)) <= 4 * 32 + 1
        flush.run()
        unsynced.finish_flush(flush)
        points.append(unsynced.recovery_point)

    assert points == [320, 400]
