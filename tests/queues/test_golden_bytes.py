"""The files are v-queue's, byte for byte. The bytes here were written by the crate itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.queue import Position, Queue

if TYPE_CHECKING:
    from pathlib import Path

LONG = bytes(i % 251 for i in range(300))
RECORDS = b"".join(
    (
        bytes.fromhex("00000000000000000d000000eefeefee0100000053adc0c3bd") + b"Hello, world!",
        bytes.fromhex("260000000000000004000000eefeefee020000004f521cfd96000102ff"),
        bytes.fromhex("430000000000000000000000eefeefee0300000053ab0e1445"),
        bytes.fromhex("5c000000000000000c000000eefeefee040000005364544553d09fd180d0b8d0b2d0b5d182"),
        bytes.fromhex("81000000000000002c010000eefeefee050000004f4e01252c") + LONG,
    )
)
MESSAGES: list[bytes | str] = ["Hello, world!", b"\x00\x01\x02\xff", "", "Привет", LONG]


def fill(folder: Path) -> None:
    with Queue(folder, "events") as queue:
        assert [queue.push(message) for message in MESSAGES] == [38, 67, 92, 129, 454]


def test_pushed_messages_equal_the_crates_bytes(tmp_path: Path) -> None:
    fill(tmp_path)
    assert (tmp_path / "events-0" / "events_queue").read_bytes() == RECORDS
    assert (tmp_path / "events-0" / "events_info_push").read_bytes() == b"events;454;5;2934033464\n"
    assert (tmp_path / "events_info_queue").read_bytes() == b"events;0;1108990433\n"
    assert (tmp_path / "events_queue.lock").read_bytes() == b""


def test_messages_pushed_together_are_the_same_bytes(tmp_path: Path) -> None:
    with Queue(tmp_path, "events") as queue:
        assert queue.push_many(MESSAGES) == 5
    assert (tmp_path / "events-0" / "events_queue").read_bytes() == RECORDS
    assert (tmp_path / "events-0" / "events_info_push").read_bytes() == b"events;454;5;2934033464\n"


def test_a_new_part_and_every_open_for_writing_update_the_info_files(tmp_path: Path) -> None:
    for line in (b"events;0;1108990433\n", b"events;1;1526917280\n", b"events;2;1882176355\n"):
        with Queue(tmp_path, "events") as queue:
            part = queue.part
            assert (tmp_path / "events_info_queue").read_bytes() == line
            assert (tmp_path / f"events-{part}" / "events_info_push").read_bytes() == b"events;0;0;2550015980\n"
            assert (tmp_path / f"events-{part}" / "events_queue").read_bytes() == b""


def test_a_commit_is_a_line_without_a_checksum(tmp_path: Path) -> None:
    with Queue(tmp_path, "individuals-flow") as queue, queue.consumer("c1") as consumer:
        assert (tmp_path / "individuals-flow_info_pop_c1").read_bytes() == b"individuals-flow;c1;0;0;0\n"
        assert (tmp_path / "individuals-flow_info_pop_c1.lock").exists()
        queue.push_many([b"12345", b"12345"])
        consumer.pop_many(2)
        consumer.commit()
        assert (tmp_path / "individuals-flow_info_pop_c1").read_bytes() == b"individuals-flow;c1;60;2;0\n"
    assert not (tmp_path / "individuals-flow_info_pop_c1.lock").exists()


def test_files_of_the_crate_are_read(tmp_path: Path) -> None:
    part = tmp_path / "events-0"
    part.mkdir()
    (part / "events_queue").write_bytes(RECORDS)
    # A shorter line that was written over a longer one, as 0.2.7 leaves it.
    (part / "events_info_push").write_bytes(b"events;454;5;2934033464\n4\n")
    (tmp_path / "events_info_queue").write_bytes(b"events;0;1108990433\n\n")
    (tmp_path / "events_info_pop_c").write_bytes(b"events;c;38;1;0\n0\n")
    with Queue(tmp_path, "events", "read") as queue, queue.consumer("c") as consumer:
        assert [message.body for message in consumer] == [
            message if isinstance(message, bytes) else message.encode() for message in MESSAGES[1:]
        ]
        assert consumer.position == Position(0, 454, 5)
    assert not (tmp_path / "events-1").exists()
