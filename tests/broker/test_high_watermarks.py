"""High watermarks outlive a restart, and not the topic that they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.replication.high_watermarks import HighWatermarks
from ottla.core.ids import TopicPartition
from ottla.storage.folder.checkpoints import HIGH_WATERMARKS, read_offsets

if TYPE_CHECKING:
    from pathlib import Path

AT, OTHER = TopicPartition("t", 0), TopicPartition("other", 0)


def _noted(folder: Path) -> HighWatermarks:
    for at in (AT, OTHER):
        (folder / str(at)).mkdir()
    noted = HighWatermarks(folder)
    noted.note({AT: 5, OTHER: 7})()
    return noted


def test_they_are_there_after_a_restart(tmp_path: Path) -> None:
    _noted(tmp_path)

    assert HighWatermarks(tmp_path).of(AT) == 5


def test_a_topic_that_is_created_again_does_not_get_those_of_the_deleted_one(tmp_path: Path) -> None:
    noted = _noted(tmp_path)

    noted.forget(AT)

    assert noted.of(AT) == 0
    assert read_offsets(tmp_path / HIGH_WATERMARKS) == {OTHER: 7}


def test_nor_if_it_was_created_again_while_the_broker_was_down(tmp_path: Path) -> None:
    _noted(tmp_path)
    (tmp_path / str(AT)).rmdir()

    noted = HighWatermarks(tmp_path)

    assert noted.lost == {AT}
    assert (noted.of(AT), noted.of(OTHER)) == (0, 7)
    assert read_offsets(tmp_path / HIGH_WATERMARKS) == {OTHER: 7}


def test_a_checkpoint_that_was_overtaken_is_not_written(tmp_path: Path) -> None:
    noted = _noted(tmp_path)
    late = noted.note({AT: 6})
    noted.forget(AT)
    assert noted.of(AT) == 0

    late()

    assert read_offsets(tmp_path / HIGH_WATERMARKS) == {OTHER: 7}


def test_what_cannot_be_read_counts_for_nothing(tmp_path: Path) -> None:
    _noted(tmp_path)
    (tmp_path / HIGH_WATERMARKS).write_bytes(b"\xff")

    assert HighWatermarks(tmp_path).of(AT) == 0
