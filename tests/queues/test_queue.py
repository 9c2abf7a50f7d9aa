"""Push and pop."""

from __future__ import annotations

import os
import resource
import threading
from array import array
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.core.clock import ManualClock
from ottla.queue import (
    FailWrite,
    NotFound,
    NotReady,
    Other,
    Position,
    Queue,
    QueueError,
    list_queues,
    part_writer,
    record,
)
from ottla.queue import files as queue_files

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.queue import Consumer


def bodies(consumer: Consumer) -> list[bytes]:
    return [message.body for message in consumer]


def test_messages_are_popped_in_the_order_they_were_pushed(tmp_path: Path) -> None:
    with Queue(tmp_path, "q") as queue, queue.consumer("c") as consumer:
        queue.push("text")
        queue.push(b"bytes")
        first, second = consumer.pop(), consumer.pop()
        assert first is not None
        assert second is not None
        assert (first.text, first.is_text, first.number) == ("text", True, 1)
        assert (second.body, second.is_text, second.offset) == (b"bytes", False, 29)
        assert consumer.pop() is None


def test_a_queue_without_a_name_is_named_after_its_folder(tmp_path: Path) -> None:
    with Queue(tmp_path / "jobs") as queue:
        queue.push(b"x")
    assert list_queues(tmp_path / "jobs") == ["jobs"]


def test_an_unreferenced_queue_is_closed(tmp_path: Path) -> None:
    Queue(tmp_path, "q").push(b"1")
    Queue(tmp_path, "q").push(b"2")
    with Queue(tmp_path, "q") as queue:
        queue.consumer("c", "earliest").pop()
        with queue.consumer("c") as consumer:
            assert bodies(consumer) == [b"1", b"2"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=300), st.text(max_size=80)), max_size=40), st.integers(1, 400))
def test_pushed_messages_are_popped_across_parts_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, messages: list[bytes | str], part_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("queue")
    with Queue(folder, "q", fsync="never", part_bytes=part_bytes) as queue, queue.consumer("c", "earliest") as consumer:
        for message in messages[::2]:
            queue.push(message)
        queue.push_many(messages[1::2])
        found = [message.text if message.is_text else message.body for message in consumer]
    assert found == messages[::2] + messages[1::2]


def test_a_consumer_resumes_where_it_committed_and_not_where_it_read(tmp_path: Path) -> None:
    with Queue(tmp_path, "q") as queue:
        with queue.consumer("c") as consumer:
            queue.push_many([b"1", b"2", b"3"])
            consumer.pop()
            consumer.commit()
            consumer.pop()
        with queue.consumer("c") as consumer:
            assert bodies(consumer) == [b"2", b"3"]


def test_moving_to_the_next_part_commits_nothing(tmp_path: Path) -> None:
    with Queue(tmp_path, "q") as queue:
        queue.push_many([b"1", b"2"])
        queue.consumer("c").close()
    with Queue(tmp_path, "q") as queue:
        queue.push(b"3")
        with queue.consumer("c") as consumer:
            assert bodies(consumer) == [b"1", b"2", b"3"]
        with queue.consumer("c") as consumer:
            assert bodies(consumer) == [b"1", b"2", b"3"]


def test_a_new_consumer_starts_at_the_earliest_message_unless_it_asks_for_the_latest_part(tmp_path: Path) -> None:
    for message in (b"old", b"new"):
        with Queue(tmp_path, "q") as queue:
            queue.push(message)
    with Queue(tmp_path, "q") as queue:
        with queue.consumer("worker") as consumer:
            assert consumer.lag == 2
            assert bodies(consumer) == [b"old", b"new"]
        with queue.reader() as reader:
            assert bodies(reader) == [b"old", b"new"]
        queue.push(b"newest")
        with queue.consumer("late", "latest_part") as consumer:
            assert bodies(consumer) == [b"newest"]


def test_a_part_ends_when_it_is_large_or_old(tmp_path: Path) -> None:
    clock = ManualClock()
    with Queue(tmp_path, "q", clock=clock, part_bytes=60, part_age_ms=1000) as queue:
        queue.push(b"12345")
        queue.push(b"12345")
        assert queue.part == 0
        queue.push(b"12345")
        assert queue.part == 1
        clock.advance(1)
        queue.push(b"12345")
        assert (queue.part, queue.count_pushed, len(queue)) == (2, 1, 4)
        queue.push(b"a message that is larger than any part may be, and has one for itself" * 2)
        assert (queue.part, queue.count_pushed) == (3, 1)


def test_a_part_never_holds_more_messages_than_can_be_numbered(tmp_path: Path) -> None:
    with Queue(tmp_path, "q") as queue, queue.consumer("c") as consumer:
        queue.push(b"1")
        assert queue._writer is not None
        queue._writer.count_pushed = record.MAX_NUMBER
        queue.push(b"2")
        assert queue.part == 1
        queue.push(b"3")
        consumer.seek("latest_part")
        assert bodies(consumer) == [b"2", b"3"]


def test_lag_counts_unread_messages_of_all_parts(tmp_path: Path) -> None:
    with Queue(tmp_path, "q", part_bytes=30) as queue, queue.consumer("c") as consumer:
        queue.push_many([b"1", b"2", b"3", b"4"])
        assert consumer.lag == 4
        consumer.pop_many(3)
        assert consumer.lag == 1
        consumer.seek("end")
        assert consumer.lag == 0


def test_a_consumer_seeks_to_the_position_of_a_message(tmp_path: Path) -> None:
    with Queue(tmp_path, "q") as queue, queue.consumer("c") as consumer:
        queue.push_many([b"1", b"2", b"3"])
        consumer.pop()
        second = consumer.position
        assert bodies(consumer) == [b"2", b"3"]
        consumer.seek(second)
        assert bodies(consumer) == [b"2", b"3"]
        consumer.seek("earliest")
        assert consumer.lag == 3
        with pytest.raises(NotFound, match="no message starts at byte 7"):
            consumer.seek(Position(0, 7, 0))


def test_pop_waits_for_a_message(tmp_path: Path) -> None:
    with Queue(tmp_path, "q") as queue, queue.consumer("c") as consumer:
        assert consumer.pop(timeout_ms=1) is None
        pusher = threading.Timer(0.01, queue.push, [b"late"])
        pusher.start()
        message = consumer.pop(timeout_ms=20_000)
        pusher.join()
        assert message is not None
        assert message.body == b"late"


def test_a_read_only_queue_and_a_read_only_consumer_write_nothing(tmp_path: Path) -> None:
    with Queue(tmp_path, "q") as queue:
        queue.push(b"1")
        queue.consumer("c").close()
        with Queue(tmp_path, "q", "read") as reading:
            with pytest.raises(NotReady, match="reading only"):
                reading.push(b"2")
            before = sorted(tmp_path.rglob("*"))
            with reading.consumer("c", mode="read") as consumer, queue.consumer("c") as other:
                assert bodies(consumer) == bodies(other) == [b"1"]
                with pytest.raises(NotReady, match="reading only"):
                    consumer.commit()
            with pytest.raises(NotFound, match="no consumer d"):
                reading.consumer("d", mode="read")
            assert sorted(tmp_path.rglob("*")) == before


def test_reading_a_missing_queue_fails_and_does_not_create_it(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no queue q"):
        Queue(tmp_path / "nowhere", "q", "read")
    assert not (tmp_path / "nowhere").exists()


def test_a_closed_queue_is_not_ready(tmp_path: Path) -> None:
    queue = Queue(tmp_path, "q")
    consumer = queue.consumer("c")
    consumer.close()
    consumer.close()
    queue.close()
    queue.close()
    for use in (lambda: queue.push(b""), queue.flush, lambda: queue.consumer("c"), consumer.pop, consumer.commit):
        with pytest.raises(NotReady, match="is closed"):
            use()


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "a\\b", "a b", "a;b", "a:b", "a*", "a\n", "CON", "nul.txt", "x.", "a_info_pop_b", "x" * 101],
)
def test_a_name_that_is_not_portable_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Other, match=r"invalid .* name"):
        Queue(tmp_path, name)
    with Queue(tmp_path, "q") as queue, pytest.raises(Other, match=r"invalid .* name"):
        queue.consumer(name)


def test_queues_share_a_folder_without_seeing_each_other(tmp_path: Path) -> None:
    with Queue(tmp_path, "a") as a, Queue(tmp_path, "a-1") as b, Queue(tmp_path, "é") as c:
        for queue in (a, b, c):
            queue.push(queue.name)
            queue.consumer("me").close()
        assert list_queues(tmp_path) == ["a", "a-1", "é"]
        assert a.folder.parts() == [0]
        assert a.consumers() == ["me"]
        assert [len(a), len(b), len(c)] == [1, 1, 1]


def test_a_write_that_fails_leaves_nothing_and_the_next_one_works(tmp_path: Path) -> None:
    def push_beyond_the_limit() -> None:
        with pytest.raises(FailWrite, match="File too large"):
            queue.push(b"2" * 100)
        with pytest.raises(FailWrite, match="File too large"):
            queue.push_many([b"2" * 100, b"3"])

    with Queue(tmp_path, "q", fsync="never") as queue, queue.consumer("c") as consumer:
        edge = queue.push(b"1" * 100)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (edge + 50, limits[1]))
        try:
            push_beyond_the_limit()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert queue.folder.data(0).stat().st_size == edge
        queue.push(b"4")
        assert bodies(consumer) == [b"1" * 100, b"4"]


def test_a_push_whose_info_cannot_be_written_has_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_full = False

    def write(fd: int, data: bytes, offset: int) -> int:
        if is_full and data.startswith(b"q;"):
            raise OSError(28, "No space left on device")
        return os.pwrite(fd, data, offset)

    monkeypatch.setattr(queue_files, "write_some", write)
    with Queue(tmp_path, "q", fsync="never") as queue, queue.consumer("c") as consumer:
        queue.push(b"1")
        is_full = True
        with pytest.raises(FailWrite, match="No space left"):
            queue.push(b"2")
        with pytest.raises(FailWrite, match="No space left"):
            queue.push_many([b"2", b"3"])
        is_full = False
        queue.push(b"4")
        assert bodies(consumer) == [b"1", b"4"]


def test_only_bytes_like_objects_can_be_pushed(tmp_path: Path) -> None:
    with Queue(tmp_path, "q", fsync="never") as queue, queue.consumer("c") as consumer:
        queue.push(bytearray(b"1"))
        queue.push(memoryview(b"xx22xx")[2:4])
        queue.push(array("H", [0x3333, 0x3333]))  # type: ignore[arg-type]
        queue.push_many([bytearray(b"4"), "5"])
        for wrong in (5, [53], None):
            with pytest.raises(TypeError):
                queue.push(wrong)  # type: ignore[arg-type]
        assert bodies(consumer) == [b"1", b"22", b"3333", b"4", b"5"]


def test_a_late_thread_pushes_to_the_current_part(tmp_path: Path) -> None:
    with Queue(tmp_path, "q", fsync="never", part_bytes=60) as queue:
        first = queue._writer
        assert first is not None
        assert first.offer(b"12345") == 30
        assert first.offer(b"1234567") == 0, "there is no room for it"
        queue.push(b"1234567")
        assert first.offer(b"1") == 0, "the part has ended"
        assert (queue.part, queue.count_pushed, len(queue)) == (1, 1, 2)


def test_after_a_failed_sync_nothing_counts_as_pushed_until_the_queue_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: int) -> None:
        raise OSError(5, "Input/output error")

    queue = Queue(tmp_path, "q")
    queue.push(b"1")
    with monkeypatch.context() as patched:
        patched.setattr(part_writer, "sync", failing)
        with pytest.raises(FailWrite, match="Input/output error"):
            queue.push(b"2")
    with pytest.raises(NotReady, match="must be reopened"):
        queue.push(b"3")
    with queue.consumer("c") as consumer:
        assert bodies(consumer) == [b"1"]
    queue.close()
    with Queue(tmp_path, "q") as queue:
        queue.push(b"4")


def test_every_error_has_v_queues_number_and_message() -> None:
    def tree(kind: type[QueueError]) -> list[type[QueueError]]:
        return [kind, *(found for below in kind.__subclasses__() for found in tree(below))]

    assert {kind.__name__: (kind.code, kind.saying) for kind in tree(QueueError)[1:]} == {
        "NotReady": (-911, "not ready"),
        "AlreadyOpen": (-8, "already open"),
        "FailWrite": (-7, "fail write"),
        "InvalidChecksum": (-6, "invalid checksum"),
        "FailReadTailMessage": (-5, "fail read tail message"),
        "FailOpen": (-4, "fail open"),
        "FailRead": (-3, "fail read"),
        "NotFound": (-2, "not found"),
        "Other": (-1, "other error"),
    }
