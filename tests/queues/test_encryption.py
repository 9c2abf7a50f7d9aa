from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ottla.queue import KeyRing, NotReady, Queue, delete_queue, repair, verify

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.queue import Message
    from ottla.queue.config import Fsync
    from ottla.queue.damage import Damage

MARKER = "the-marker-that-nobody-may-find"
ONE_KEY = KeyRing({1: b"1" * 32})
TWO_KEYS = KeyRing({1: b"1" * 32, 2: b"2" * 32})


def files_with(marker: str, folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and marker.encode() in path.read_bytes()]


def everything(folder: Path, keys: KeyRing | None) -> list[Message]:
    with Queue(folder, "jobs", "read", keys=keys) as queue, queue.reader("earliest") as reader:
        return list(reader)


@pytest.mark.parametrize("fsync", ["push", "batch", "never"])
def test_messages_are_read_back_and_no_file_has_plaintext(tmp_path: Path, fsync: Fsync) -> None:
    with Queue(tmp_path, "jobs", keys=ONE_KEY, part_bytes=2000, fsync=fsync) as queue:
        queue.push(MARKER)
        queue.push_many([MARKER.encode() * 10 for _ in range(10)])
        assert files_with(MARKER, tmp_path) == []
        sizes = [queue.folder.data(part).stat().st_size for part in queue.folder.parts()]
    assert len(sizes) > 1
    assert max(sizes) <= 2000
    assert files_with(MARKER, tmp_path) == []

    messages = everything(tmp_path, ONE_KEY)

    assert [one.body for one in messages] == [MARKER.encode(), *[MARKER.encode() * 10] * 10]
    assert [one.is_text for one in messages] == [True, *[False] * 10]
    assert list(verify(tmp_path, "jobs", ONE_KEY)) == []


def test_a_consumer_continues_where_it_stopped(tmp_path: Path) -> None:
    with Queue(tmp_path, "jobs", keys=ONE_KEY) as queue:
        queue.push_many([f"{number}" for number in range(5)])
    for number in range(5):
        with (
            Queue(tmp_path, "jobs", "read", keys=ONE_KEY) as queue,
            queue.consumer("worker", "earliest") as consumer,
        ):
            message = consumer.pop()
            assert message is not None
            assert message.text == f"{number}"
            consumer.commit()
            assert consumer.lag == 4 - number


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (None, "pass its keys"),
        (KeyRing({1: b"x" * 32}), "a different key 1"),
        (KeyRing({2: b"2" * 32}), "key 1, which is missing from"),
    ],
)
def test_a_queue_does_not_open_without_its_key(tmp_path: Path, keys: KeyRing | None, told: str) -> None:
    with Queue(tmp_path, "jobs", keys=ONE_KEY) as queue:
        queue.push(MARKER)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    for mode in ("read", "read_write"):
        with pytest.raises(NotReady, match=told):
            Queue(tmp_path, "jobs", mode, keys=keys)
    for look in (lambda: list(verify(tmp_path, "jobs", keys)), lambda: repair(tmp_path, "jobs", keys)):
        with pytest.raises(NotReady, match=told):
            look()

    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_everything_is_readable_after_enabling_encryption_and_rotating_keys(tmp_path: Path) -> None:
    for keys in (None, ONE_KEY, TWO_KEYS):
        with Queue(tmp_path, "jobs", keys=keys) as queue:
            queue.push("again")

    assert [one.text for one in everything(tmp_path, TWO_KEYS)] == ["again"] * 3


def test_a_modified_or_moved_message_is_skipped_and_reported(tmp_path: Path) -> None:
    with Queue(tmp_path, "jobs", keys=ONE_KEY) as queue:
        queue.push_many(["yes", "no!", "end"])
        data = queue.folder.data(queue.part)
    stored = bytearray(data.read_bytes())
    size = len(stored) // 3
    # Swap the bodies of the first two and fix their checksums.
    first, second = stored[25:size], stored[size + 25 : 2 * size]
    stored[25:size], stored[size + 25 : 2 * size] = second, first
    _checksum(stored, 0, size)
    _checksum(stored, size, 2 * size)
    data.write_bytes(stored)
    told: list[Damage] = []

    with (
        Queue(tmp_path, "jobs", "read", keys=ONE_KEY) as queue,
        queue.reader("earliest", on_damage=told.append) as reader,
    ):
        found = [one.text for one in reader]

    assert found == ["end"]
    assert sum(damage.messages for damage in told) == 2


def _checksum(stored: bytearray, start: int, end: int) -> None:
    from zlib import crc32

    stored[start + 21 : start + 25] = bytes(4)
    stored[start + 21 : start + 25] = crc32(stored[start:end]).to_bytes(4, "little")


def test_a_torn_end_is_repaired(tmp_path: Path) -> None:
    with Queue(tmp_path, "jobs", keys=ONE_KEY) as queue:
        queue.push_many(["one", "two"])
        data = queue.folder.data(queue.part)
        info = queue.folder.info_push(queue.part)
    os.truncate(data, data.stat().st_size - 3)
    info.unlink()

    with Queue(tmp_path, "jobs", keys=ONE_KEY) as queue:
        queue.push("three")

    assert [one.text for one in everything(tmp_path, ONE_KEY)] == ["one", "three"]


def test_a_queue_that_is_removed_leaves_nothing(tmp_path: Path) -> None:
    with Queue(tmp_path, "jobs", keys=ONE_KEY) as queue:
        queue.push(MARKER)

    delete_queue(tmp_path, "jobs")

    assert list(tmp_path.iterdir()) == []


def test_without_keys_the_format_is_unchanged(tmp_path: Path) -> None:
    with Queue(tmp_path, "jobs") as queue:
        queue.push(MARKER)
        assert queue.folder.data(0).read_bytes()[20:21] == b"S"

    assert not (tmp_path / "jobs_info_keys").exists()
