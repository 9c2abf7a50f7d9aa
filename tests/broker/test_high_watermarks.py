"""High watermarks survive a restart, but not the deletion of their topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.replication.high_watermarks import HighWatermarks
from ottla.core.ids import TopicId, TopicPartition
from ottla.storage.folder.checkpoints import HIGH_WATERMARK_TOPICS, HIGH_WATERMARKS, read_offsets

if TYPE_CHECKING:
    from pathlib import Path

AT, OTHER = TopicPartition("t", 0), TopicPartition("other", 0)
IDS = {"t": TopicId.random(), "other": TopicId.random()}


def _noted(folder: Path) -> HighWatermarks:
    for at in (AT, OTHER):
        (folder / str(at)).mkdir()
    noted = HighWatermarks(folder, IDS.get)
    noted.note({AT: 5, OTHER: 7})()
    return noted


def test_high_watermarks_survive_a_restart(tmp_path: Path) -> None:
    _noted(tmp_path)

    assert HighWatermarks(tmp_path, IDS.get).of(AT) == 5


def test_a_re_created_topic_does_not_get_the_high_watermarks_of_the_deleted_one(tmp_path: Path) -> None:
    noted = _noted(tmp_path)

    noted.forget(AT)

    assert noted.of(AT) == 0
    assert read_offsets(tmp_path / HIGH_WATERMARKS) == {OTHER: 7}


def test_a_partition_whose_folder_is_missing_is_lost(tmp_path: Path) -> None:
    _noted(tmp_path)
    (tmp_path / str(AT)).rmdir()

    noted = HighWatermarks(tmp_path, IDS.get)

    assert noted.lost == {AT}
    assert (noted.of(AT), noted.of(OTHER)) == (0, 7)
    assert read_offsets(tmp_path / HIGH_WATERMARKS) == {OTHER: 7}


def test_a_topic_re_created_while_the_broker_was_down_is_not_lost_and_gets_no_old_high_watermarks(
    tmp_path: Path,
) -> None:
    _noted(tmp_path)
    (tmp_path / str(AT)).rmdir()

    noted = HighWatermarks(tmp_path, {**IDS, "t": TopicId.random()}.get)

    assert noted.lost == frozenset()
    assert (noted.of(AT), noted.of(OTHER)) == (0, 7)


def test_a_re_created_topic_gets_no_old_high_watermarks_from_a_folder_that_could_not_be_renamed(tmp_path: Path) -> None:
    _noted(tmp_path)

    assert HighWatermarks(tmp_path, {**IDS, "t": TopicId.random()}.get).of(AT) == 0


def test_a_missing_folder_counts_as_lost_if_an_earlier_release_stored_no_topic_ids(tmp_path: Path) -> None:
    _noted(tmp_path)
    (tmp_path / HIGH_WATERMARK_TOPICS).unlink()
    (tmp_path / str(AT)).rmdir()

    assert HighWatermarks(tmp_path, IDS.get).lost == {AT}


def test_an_outdated_checkpoint_is_not_written(tmp_path: Path) -> None:
    noted = _noted(tmp_path)
    late = noted.note({AT: 6})
    noted.forget(AT)
    assert noted.of(AT) == 0

    late()

    assert read_offsets(tmp_path / HIGH_WATERMARKS) == {OTHER: 7}


def test_an_unreadable_checkpoint_is_ignored(tmp_path: Path) -> None:
    _noted(tmp_path)
    (tmp_path / HIGH_WATERMARKS).write_bytes(b"\xff")

    assert HighWatermarks(tmp_path, IDS.get).of(AT) == 0
