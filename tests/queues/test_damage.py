"""Flip each byte of a small queue, truncate at each length: intact messages are delivered, damage is reported once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ottla.queue import (
    Damage,
    FailRead,
    FailReadTailMessage,
    InvalidChecksum,
    NotFound,
    Queue,
    QueueError,
    repair,
    verify,
)

MESSAGES = [b"first", b"", b"third \xee\xfe\xef\xee", b"4", b"the fifth is in another part", b"sixth", b"7"]
IN_FIRST_PART = 4
DATA = "q-0/q_queue"


def ends() -> list[int]:
    """The end positions of the messages of the first part."""
    found, end = [], 0
    for body in MESSAGES[:IN_FIRST_PART]:
        end += 25 + len(body)
        found.append(end)
    return found


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("intact")
    with Queue(folder, "q", fsync="never") as queue, queue.consumer("c") as consumer:
        queue.push_many(MESSAGES[:IN_FIRST_PART])
        consumer.pop()
        consumer.commit()
    with Queue(folder, "q", fsync="never") as queue:
        queue.push_many(MESSAGES[IN_FIRST_PART:])
    return folder


@pytest.fixture
def copy(intact: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(intact, tmp_path / "copy"))


def read_all(folder: Path, consumer: str = "all") -> tuple[list[bytes], list[Damage]]:
    damages: list[Damage] = []
    with (
        Queue(folder, "q", "read", fsync="never") as queue,
        queue.consumer(consumer, "earliest", on_damage=damages.append) as reading,
    ):
        found = [message.body for message in reading]
        assert reading.pop() is None
        reading.commit()
    with Queue(folder, "q", "read") as queue, queue.consumer(consumer, on_damage=damages.append) as reading:
        assert reading.pop() is None
    return found, damages


def flips(data: bytes) -> list[bytes]:
    return [
        data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :] for at in range(len(data)) for mask in (0x01, 0x10, 0xFF)
    ]


def test_each_flipped_byte_loses_one_message_reported_once(copy: Path) -> None:
    path = copy / DATA
    data = path.read_bytes()
    for at in range(len(data)):
        for mask in (0x01, 0x80, 0xFF):
            (copy / "q_info_pop_all").unlink(missing_ok=True)
            path.write_bytes(data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
            hit = next(number for number, end in enumerate(ends()) if at < end)
            found, damages = read_all(copy)
            assert found == MESSAGES[:hit] + MESSAGES[hit + 1 :], (at, mask)
            assert [(damage.messages, damage.kind) for damage in damages] == [(1, InvalidChecksum)], (at, mask)
            assert len(list(verify(copy, "q"))) == 1


def test_each_truncation_loses_only_the_cut_messages_reported_once(copy: Path) -> None:
    path = copy / DATA
    data = path.read_bytes()
    for size in range(len(data)):
        (copy / "q_info_pop_all").unlink(missing_ok=True)
        path.write_bytes(data[:size])
        left = sum(end <= size for end in ends())
        found, damages = read_all(copy)
        assert found == MESSAGES[:left] + MESSAGES[IN_FIRST_PART:], size
        assert [(damage.messages, damage.kind) for damage in damages] == [(IN_FIRST_PART - left, FailReadTailMessage)]


def test_a_truncated_part_does_not_prevent_writing(copy: Path) -> None:
    path = copy / "q-1" / "q_queue"
    path.write_bytes(path.read_bytes()[:-1])
    with Queue(copy, "q", fsync="never") as queue:
        queue.push(b"8")
    found, damages = read_all(copy)
    assert found == [*MESSAGES[:-1], b"8"]
    assert [damage.messages for damage in damages] == [1]


@pytest.mark.parametrize("name", ["q_info_queue", "q-0/q_info_push", "q-1/q_info_push"])
def test_a_damaged_info_file_loses_no_message(copy: Path, name: str) -> None:
    path = copy / name
    data = path.read_bytes()
    for damaged in [*flips(data), *(data[:size] for size in range(len(data)))]:
        (copy / "q_info_pop_all").unlink(missing_ok=True)
        path.write_bytes(damaged)
        assert read_all(copy) == (MESSAGES, []), damaged
    path.unlink()
    (copy / "q_info_pop_all").unlink()
    assert read_all(copy) == (MESSAGES, [])
    assert [problem.kind for problem in verify(copy, "q")] == [InvalidChecksum]
    assert len(repair(copy, "q")) == 1
    assert path.read_bytes() == data
    assert list(verify(copy, "q")) == []


def test_a_damaged_commit_redelivers_messages_and_loses_none(copy: Path) -> None:
    path = copy / "q_info_pop_c"
    data = path.read_bytes()
    assert data == b"q;c;30;1;0\n"
    with Queue(copy, "q", "read", fsync="never") as queue:
        for damaged in [*flips(data), *(data[:size] for size in range(len(data)))]:
            path.write_bytes(damaged)
            if damaged.startswith(b"q;c;30;1;1"):
                continue  # a valid position in another part: undetectable
            with queue.consumer("c") as consumer:
                found = [message.body for message in consumer]
            assert found[-6:] == MESSAGES[1:], damaged


def test_a_stale_info_queue_does_not_rewind_consumers(tmp_path: Path) -> None:
    with Queue(tmp_path, "q", fsync="never") as queue:
        queue.push(b"1")
        stale = (tmp_path / "q_info_queue").read_bytes()
    with Queue(tmp_path, "q", fsync="never") as queue, queue.consumer("c", "earliest") as consumer:
        queue.push_many([b"2", b"3"])
        consumer.pop_many(2)
        consumer.commit()
    (tmp_path / "q_info_queue").write_bytes(stale)
    with Queue(tmp_path, "q", "read") as queue, queue.consumer("c") as consumer:
        assert [message.body for message in consumer] == [b"3"]


def test_two_adjacent_damaged_messages_are_reported_separately(copy: Path) -> None:
    path = copy / DATA
    data = bytearray(path.read_bytes())
    data[27] ^= 1
    data[ends()[2] - 1] ^= 1
    path.write_bytes(data)
    found, damages = read_all(copy)
    assert found == MESSAGES[1:2] + MESSAGES[3:]
    assert [damage.messages for damage in damages] == [1, 1]
    data[0:60] = bytes(60)
    path.write_bytes(data)
    found, damages = read_all(copy, "another")
    assert found == MESSAGES[3:]
    assert sum(damage.messages for damage in damages) == 3


def test_damage_can_be_raised_and_reading_continues_after_it(copy: Path) -> None:
    path = copy / DATA
    data = bytearray(path.read_bytes())
    data[ends()[1] + 26] ^= 1
    path.write_bytes(data)

    def stop(damage: Damage) -> None:
        raise damage.as_error()

    with Queue(copy, "q", "read") as queue, queue.consumer("c", on_damage=stop) as consumer:
        consumer.seek("earliest")
        assert [message.body for message in consumer.pop_many(100)] == MESSAGES[:2]
        with pytest.raises(InvalidChecksum, match="part 0, byte 55: checksum mismatch"):
            consumer.pop_many(100)
        assert [message.body for message in consumer.pop_many(100)] == MESSAGES[3:]


def test_a_missing_part_is_skipped_and_reported(tmp_path: Path) -> None:
    for message in (b"1", b"2", b"3", b"4"):
        with Queue(tmp_path, "q", fsync="never") as queue:
            queue.push(message)
    shutil.rmtree(tmp_path / "q-1")
    shutil.rmtree(tmp_path / "q-2")
    found, damages = read_all(tmp_path)
    assert found == [b"1", b"4"]
    assert [(damage.part, damage.kind) for damage in damages] == [(1, NotFound)]
    assert [problem.part for problem in verify(tmp_path, "q")] == [1, 2]
    shutil.rmtree(tmp_path / "q-0")
    (tmp_path / "q_info_pop_old").write_bytes(b"q;old;26;1;0\n")
    found, damages = read_all(tmp_path, "old")
    assert found == [b"4"]
    assert [(damage.part, damage.kind) for damage in damages] == [(0, NotFound)]


def test_an_empty_new_part_is_skipped_silently(tmp_path: Path) -> None:
    for message in (b"1", b"2"):
        with Queue(tmp_path, "q", fsync="never") as queue:
            queue.push(message)
            (tmp_path / f"q-{queue.part + 1}").mkdir()
    assert list(verify(tmp_path, "q")) == []
    found, damages = read_all(tmp_path)
    assert found == [b"1", b"2"]
    assert damages == []


def test_all_parts_missing_is_an_empty_queue(tmp_path: Path) -> None:
    with Queue(tmp_path, "q", fsync="never") as queue:
        queue.push(b"1")
    shutil.rmtree(tmp_path / "q-0")
    with Queue(tmp_path, "q", "read") as queue, queue.consumer("c") as consumer:
        assert consumer.pop() is None
        assert consumer.lag == 0
    with Queue(tmp_path, "q", fsync="never") as queue:
        assert queue.part == 1


def test_messages_of_a_newer_format_are_reported_as_such(tmp_path: Path) -> None:
    with Queue(tmp_path, "q", fsync="never") as queue:
        queue.push(b"1")
    path = tmp_path / DATA
    path.write_bytes(path.read_bytes().replace(b"\xee\xfe\xef\xee", b"\x33\xfe\xef\xee"))
    found, damages = read_all(tmp_path)
    assert found == []
    assert "0.3 and later" in str(damages[0])


def test_a_large_message_is_found_again_behind_a_destroyed_header(tmp_path: Path) -> None:
    large = bytes(range(256)) * 12_000
    with Queue(tmp_path, "q", fsync="never") as queue:
        queue.push_many([large, large, b"small"])
    path = tmp_path / DATA
    data = bytearray(path.read_bytes())
    data[0:25] = b"?" * 25
    path.write_bytes(data)
    found, damages = read_all(tmp_path)
    assert found == [large, b"small"]
    assert [damage.end for damage in damages] == [25 + len(large)]


def test_messages_beyond_the_recorded_end_appear_with_the_next_writer(tmp_path: Path) -> None:
    """After a power cut the messages may be on disk, but not the line that records them."""
    with Queue(tmp_path, "q", fsync="never") as queue:
        queue.push(b"1")
        line = (tmp_path / "q-0" / "q_info_push").read_bytes()
        queue.push_many([b"2", b"3"])
    (tmp_path / "q-0" / "q_info_push").write_bytes(line)
    with (tmp_path / DATA).open("ab") as file:
        file.write(b"torn")
    assert read_all(tmp_path)[0] == [b"1"]
    Queue(tmp_path, "q", fsync="never").close()
    assert read_all(tmp_path)[0] == [b"2", b"3"]


def test_a_read_error_is_not_reported_as_damage(tmp_path: Path) -> None:
    with Queue(tmp_path, "q", fsync="never") as queue, queue.consumer("c") as consumer:
        queue.push(b"1")
        path = tmp_path / DATA
        path.rename(tmp_path / "aside")
        path.mkdir()
        with pytest.raises(FailRead):
            consumer.pop()
        path.rmdir()
        (tmp_path / "aside").rename(path)
    with pytest.raises(QueueError):
        repair(tmp_path / "nowhere", "q")
