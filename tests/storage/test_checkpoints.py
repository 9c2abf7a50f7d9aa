from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.ids import TopicId, TopicPartition
from ottla.storage.folder.checkpoints import (
    BadCheckpoint,
    read_aborted,
    read_epochs,
    read_offsets,
    read_topic_id,
    write_aborted,
    write_epochs,
    write_offsets,
    write_topic_id,
)

if TYPE_CHECKING:
    from pathlib import Path

ID_TEXT = "g44z2k4uQeCBfVXVsQ5aTQ"


def test_offsets_are_written_as_kafka_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    offsets = {TopicPartition("orders", 0): 134, TopicPartition("kinds.of_record-1", 1): 48}

    write_offsets(path, offsets)

    assert path.read_bytes() == b"0\n2\nkinds.of_record-1 1 48\norders 0 134\n"
    assert read_offsets(path) == offsets
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_no_offsets_at_all_can_be_written(tmp_path: Path) -> None:
    write_offsets(tmp_path / "c", {})

    assert (tmp_path / "c").read_bytes() == b"0\n0\n"
    assert read_offsets(tmp_path / "c") == {}


def test_order_has_no_meaning(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"0\n2\nz 1 7\na 0 9223372036854775807\n")

    assert read_offsets(tmp_path / "c") == {TopicPartition("z", 1): 7, TopicPartition("a", 0): (1 << 63) - 1}


def test_aborted_transactions_are_counted_by_segment(tmp_path: Path) -> None:
    counts = {TopicPartition("orders", 0): {0: 3, 120: 1}, TopicPartition("jobs", 7): {5: 2}}

    write_aborted(tmp_path / "c", {**counts, TopicPartition("none", 0): {}})

    assert (tmp_path / "c").read_bytes() == b"0\n3\njobs 7 5 2\norders 0 0 3\norders 0 120 1\n"
    assert read_aborted(tmp_path / "c") == counts


@pytest.mark.parametrize("line", [b"a 0 1", b"a 0 1 -1", b"a 0 -1 1", b"a x 1 1", b"a 0 1 1 1", b"a 0 1 1x"])
def test_an_invalid_count_of_aborted_transactions_is_refused(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "c").write_bytes(b"0\n1\n" + line + b"\n")

    with pytest.raises(BadCheckpoint, match="not a segment and a number"):
        read_aborted(tmp_path / "c")


@pytest.mark.parametrize("read", [read_offsets, read_epochs, read_aborted])
def test_a_missing_and_an_empty_file_have_no_entries(tmp_path: Path, read: object) -> None:
    assert callable(read)
    assert not read(tmp_path / "missing")
    (tmp_path / "empty").touch()
    assert not read(tmp_path / "empty")


BAD_FRAMES = [
    b"\n",
    b"0\n1\na 0 1",
    b"0",
    b"0\n",
    b"1\n0\n",
    b"0\n1\n",
    b"0\nx\n",
    b"0\n-1\n",
    b"0\n0\na 0 1\n",
    b"\xff\xfe\n",
    bytes(64),
]


@pytest.mark.parametrize("contents", BAD_FRAMES)
def test_an_invalid_checkpoint_is_refused(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "c").write_bytes(contents)

    with pytest.raises(BadCheckpoint):
        read_offsets(tmp_path / "c")
    with pytest.raises(BadCheckpoint):
        read_epochs(tmp_path / "c")


@pytest.mark.parametrize(
    "line", ["orders 0", "orders 0 1 2", "orders x 1", "orders 0 y", "orders  0 1", "", "orders 0 -1", "orders -1 5"]
)
def test_an_invalid_line_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "c").write_text(f"0\n1\n{line}\n")

    with pytest.raises(BadCheckpoint):
        read_offsets(tmp_path / "c")


def test_a_file_cut_short_is_refused_wherever_it_is_cut(tmp_path: Path) -> None:
    write_offsets(tmp_path / "c", {TopicPartition("a", 0): 1, TopicPartition("b", 0): 2})
    whole = (tmp_path / "c").read_bytes()

    for length in range(1, len(whole) - 2):
        (tmp_path / "c").write_bytes(whole[:length])
        with pytest.raises(BadCheckpoint):
            read_offsets(tmp_path / "c")


def test_epochs_are_written_as_kafka_writes_them(tmp_path: Path) -> None:
    write_epochs(tmp_path / "leader-epoch-checkpoint", [(0, 0), (2, 800)])

    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() == b"0\n2\n0 0\n2 800\n"
    assert read_epochs(tmp_path / "leader-epoch-checkpoint") == [(0, 0), (2, 800)]


@pytest.mark.parametrize(
    "lines",
    [["0"], ["0 x"], ["0 0 0"], ["-1 0"], ["0 -5"], ["2 0", "1 5"], ["1 5", "2 5"], ["1 5", "2 4"], ["1 0", "1 9"]],
)
def test_epochs_that_do_not_grow_are_refused(tmp_path: Path, lines: list[str]) -> None:
    (tmp_path / "c").write_text("\n".join(["0", str(len(lines)), *lines, ""]))

    with pytest.raises(BadCheckpoint):
        read_epochs(tmp_path / "c")


def test_the_topic_id_is_written_as_kafka_writes_it(tmp_path: Path) -> None:
    write_topic_id(tmp_path, TopicId.parse(ID_TEXT))

    assert (tmp_path / "partition.metadata").read_bytes() == f"version: 0\ntopic_id: {ID_TEXT}".encode()
    assert read_topic_id(tmp_path) == TopicId.parse(ID_TEXT)


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"version: 0",
        b"topic_id: g44z2k4uQeCBfVXVsQ5aTQ",
        b"version: 1\ntopic_id: g44z2k4uQeCBfVXVsQ5aTQ",
        b"version: 0\ntopic_id: short",
        b"version 0\ntopic_id g44z2k4uQeCBfVXVsQ5aTQ",
        b"\xff\x00\xff",
    ],
)
def test_a_folder_with_unreadable_metadata_has_no_topic_id(tmp_path: Path, contents: bytes) -> None:
    assert read_topic_id(tmp_path) is None
    (tmp_path / "partition.metadata").write_bytes(contents)
    assert read_topic_id(tmp_path) is None


def test_the_topic_id_may_come_first_and_end_with_a_line_feed(tmp_path: Path) -> None:
    (tmp_path / "partition.metadata").write_text(f"topic_id: {ID_TEXT}\nversion: 0\n")

    assert read_topic_id(tmp_path) == TopicId.parse(ID_TEXT)
