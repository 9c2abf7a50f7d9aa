"""Removal of parts that are no longer needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.queue import Queue

if TYPE_CHECKING:
    from pathlib import Path


def test_parts_that_every_consumer_has_committed_past_are_removed(tmp_path: Path) -> None:
    with Queue(tmp_path, "q", fsync="never", part_bytes=26, remove="committed") as queue:
        queue.push_many([b"1", b"2", b"3", b"4"])
        assert queue.folder.parts() == [0, 1, 2, 3], "without a consumer it is unknown what is needed"
        with queue.consumer("fast", "earliest") as fast, queue.consumer("slow", "earliest") as slow:
            fast.pop_many(4)
            fast.commit()
            slow.pop_many(2)
            slow.commit()
            queue.push(b"5")
            assert queue.folder.parts() == [2, 3, 4], "slow has committed all of parts 0 and 1"
            assert [message.body for message in slow] == [b"3", b"4", b"5"]
            slow.commit()
            assert queue.remove_committed() == [2, 3]
            assert queue.folder.parts() == [4], "the part that is written to stays"


def test_nothing_is_removed_unless_asked_for_or_while_a_commit_is_damaged(tmp_path: Path) -> None:
    with Queue(tmp_path, "q", fsync="never", part_bytes=26) as queue:
        queue.push_many([b"1", b"2"])
        with queue.consumer("c", "earliest") as consumer:
            consumer.pop_many(2)
            consumer.commit()
            queue.push(b"3")
            assert queue.folder.parts() == [0, 1, 2]
            (tmp_path / "q_info_pop_d").write_bytes(b"q;d;nonsense\n")
            assert queue.remove_committed() == []
            (tmp_path / "q_info_pop_d").unlink()
            assert queue.remove_committed() == [0, 1]
