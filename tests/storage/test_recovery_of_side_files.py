"""Indexes, snapshots and epochs that are missing, stale or garbage: a log that is opened again answers the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.storage.segment_files.index_file import TIME_ENTRY

from .making import Partition, Producing, batch
from .recovering import ABORT, answers, contents

if TYPE_CHECKING:
    from collections.abc import Callable

    OpenPartition = Callable[..., Partition]

# Files that are missing, stale or garbage

DAMAGE: dict[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda _: None,
    "empty": lambda _: b"",
    "cut in an entry": lambda data: data[:-1],
    "cut to an entry": lambda data: data[: len(data) // 2 // 24 * 24],
    "zeros, as an unsynced file": lambda data: bytes(len(data)),
    "zeros behind, as of a running Kafka": lambda data: data + bytes(2400),
    "garbage": lambda data: (bytes(range(256)) * 20)[: len(data)],
    "garbage of any length": lambda _: b"garbage",
    "ones": lambda data: b"\xff" * len(data),
}


def damage_all(opened: Partition, suffix: str, damage: str) -> None:
    for name, data in contents(opened.folder, suffix).items():
        damaged = DAMAGE[damage](data)
        (opened.folder / name).unlink()
        if damaged is not None:
            (opened.folder / name).write_bytes(damaged)


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_an_index_in_any_state_gives_the_same_answers(
    opened: Partition,
    suffix: str,
    damage: str,
    is_clean: bool,  # noqa: FBT001
) -> None:
    before = answers(opened.log)
    opened.stop()
    damage_all(opened, suffix, damage)

    log = opened.reopen_clean() if is_clean else opened.reopen_unclean(opened.log.next_offset)

    assert answers(log) == before
    assert log.append(batch(b"new"), leader_epoch=9).base_offset == log.next_offset - 1
    after = answers(log)
    assert answers(opened.reopen_clean()) == after


@pytest.mark.parametrize("damage", DAMAGE)
def test_transaction_indexes_in_any_state_give_the_same_answers(opened: Partition, damage: str) -> None:
    before = answers(opened.log)
    opened.stop()
    damage_all(opened, ".txnindex", damage)

    assert answers(opened.reopen_unclean(0)) == before


def test_an_entry_that_is_missing_in_the_middle_of_a_transaction_index_is_put_back(partition: OpenPartition) -> None:
    opened = partition()
    for sequence in range(4):
        opened.log.append(batch(by=Producing(1, 0, sequence, is_transactional=True)))
        opened.log.append_end_marker(1, 0, ABORT)
    before = opened.log.aborted_transactions(0, 100)
    path = opened.log.segments[0].txn_index.path
    data = path.read_bytes()
    path.write_bytes(data[:34] + data[68:])

    assert opened.reopen_unclean(0).aborted_transactions(0, 100) == before
    assert path.read_bytes() == data


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("damage", ["missing", "empty", "garbage", "cut in an entry", "ones"])
def test_producer_snapshots_in_any_state_give_the_same_answers(opened: Partition, damage: str, is_clean: bool) -> None:  # noqa: FBT001
    before = answers(opened.log)
    opened.stop()
    damage_all(opened, ".snapshot", damage)

    assert answers(opened.reopen_clean() if is_clean else opened.reopen_unclean()) == before


NO_EPOCHS = [None, "", "garbage", "0\n2\n5 3\n1 4\n"]
OTHER_EPOCHS = ["0\n1\n0 0\n", "0\n2\n0 0\n9 99999\n"]
"""Whole, and so believed after a clean stop: a power cut may lose the last lines, or keep those of lost batches."""


@pytest.mark.parametrize(
    ("is_clean", "text"), [(True, text) for text in NO_EPOCHS] + [(False, text) for text in NO_EPOCHS + OTHER_EPOCHS]
)
def test_leader_epochs_in_any_state_are_found_in_the_batches(
    opened: Partition,
    is_clean: bool,  # noqa: FBT001
    text: str | None,
) -> None:
    before = opened.log.epochs.entries
    assert len(before) == 3
    opened.stop()
    path = opened.folder / "leader-epoch-checkpoint"
    path.unlink()
    if text is not None:
        path.write_text(text)

    log = opened.reopen_clean() if is_clean else opened.reopen_unclean(0)

    assert log.epochs.entries == before


def test_leader_epochs_whose_last_lines_are_lost_are_found_where_they_began(opened: Partition) -> None:
    before = opened.log.epochs.entries
    end = opened.log.next_offset
    opened.kill()
    (opened.folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")

    assert opened.reopen_unclean(recovery_point=end).epochs.entries == before


def test_indexes_as_a_killed_kafka_broker_leaves_them(opened: Partition) -> None:
    """The active ones at full length with zeros behind, and without the last time entry."""
    before = answers(opened.log)
    opened.stop()
    active = opened.log.segments[-1]
    active.indexes.offset_path.write_bytes(active.indexes.offset_path.read_bytes() + bytes(10 * 1024))
    entries = active.indexes.time_path.read_bytes()[: -TIME_ENTRY.size]
    active.indexes.time_path.write_bytes(entries + bytes(12 * 853))

    assert answers(opened.reopen_unclean(0)) == before
    opened.stop()
    assert active.indexes.offset_path.stat().st_size < 1024


@pytest.mark.parametrize("suffix", [".deleted", ".cleaned", ".tmp"])
def test_leftovers_are_removed(opened: Partition, suffix: str) -> None:
    before = answers(opened.log)
    opened.stop()
    for kind in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
        (opened.folder / f"{0:020d}{kind}{suffix}").write_bytes(b"leftover")

    assert answers(opened.reopen_clean()) == before
    assert not opened.names(suffix)


def test_indexes_of_no_segment_are_removed_and_foreign_files_left_alone(opened: Partition) -> None:
    before = answers(opened.log)
    opened.stop()
    for name in (f"{777:020d}.index", f"{777:020d}.timeindex", "notes.txt", "0.log", "x" * 20 + ".log"):
        (opened.folder / name).write_text("mine")

    assert answers(opened.reopen_clean()) == before
    assert not (opened.folder / f"{777:020d}.index").exists()
    for name in ("notes.txt", "0.log", "x" * 20 + ".log"):
        assert (opened.folder / name).read_text() == "mine"
