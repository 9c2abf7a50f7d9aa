from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ottla.storage.segment_files.txn_index import AbortedTransaction, TxnIndex

if TYPE_CHECKING:
    from pathlib import Path

ENTRIES = [
    AbortedTransaction(1, 11, 20, 13),
    AbortedTransaction(2, 13, 30, 31),
    AbortedTransaction(1, 25, 40, 41),
]


@pytest.fixture
def index(tmp_path: Path) -> TxnIndex:
    index = TxnIndex(tmp_path / "00000000000000000000.txnindex")
    for entry in ENTRIES:
        index.append(entry)
    return index


def test_the_file_exists_only_once_there_is_an_entry(tmp_path: Path) -> None:
    index = TxnIndex(tmp_path / "t")

    assert index.overlapping(0, 100) == []
    assert index.is_sane(0, 100)
    index.drop_from(0)
    assert not index.path.exists()


def test_entries_are_written_as_kafka_writes_them(index: TxnIndex) -> None:
    assert index.path.read_bytes()[:34] == bytes.fromhex(
        "0000 0000000000000001 000000000000000b 0000000000000014 000000000000000d"
    )
    assert index.path.stat().st_size == 3 * 34
    assert index.is_sane(0, 100)
    assert index.is_sane(20, 41)


def test_entries_are_counted_whether_they_were_read_or_not(index: TxnIndex) -> None:
    assert (len(index), len(TxnIndex(index.path)), len(TxnIndex(index.path.with_name("none")))) == (3, 3, 0)
    index.drop_from(30)
    assert (len(index), len(TxnIndex(index.path))) == (1, 1)


def test_another_process_reads_the_same(index: TxnIndex) -> None:
    assert TxnIndex(index.path).overlapping(0, 1 << 62) == ENTRIES


@pytest.mark.parametrize(
    ("from_offset", "until_offset", "numbers"),
    [
        (0, 11, []),
        (0, 12, [0]),
        (20, 21, [0, 1]),
        (21, 22, [1]),
        (30, 31, [1, 2]),
        (31, 100, [2]),
        (40, 41, [2]),
        (41, 100, []),
        (0, 100, [0, 1, 2]),
    ],
)
def test_a_transaction_concerns_readers_of_any_offset_it_spans(
    index: TxnIndex, from_offset: int, until_offset: int, numbers: list[int]
) -> None:
    assert index.overlapping(from_offset, until_offset) == [ENTRIES[number] for number in numbers]


@pytest.mark.parametrize(("offset", "left"), [(0, 0), (20, 0), (21, 1), (30, 1), (31, 2), (40, 2), (41, 3)])
def test_truncation_drops_transactions_whose_marker_went(index: TxnIndex, offset: int, left: int) -> None:
    index.drop_from(offset)

    assert index.overlapping(0, 100) == ENTRIES[:left]
    assert TxnIndex(index.path).overlapping(0, 100) == ENTRIES[:left]
    assert index.path.exists() == (left > 0)
    index.append(AbortedTransaction(7, 50, 60, 61))
    assert TxnIndex(index.path).overlapping(50, 100)[-1].producer_id == 7


def test_the_marker_of_an_entry_is_known(index: TxnIndex) -> None:
    assert [offset for offset in range(100) if index.has(offset)] == [20, 30, 40]
    index.drop_from(0)
    assert not index.has(20)


def test_a_torn_entry_at_the_end_is_covered_by_the_next(index: TxnIndex) -> None:
    os.truncate(index.path, 3 * 34 - 1)
    reopened = TxnIndex(index.path)

    assert not reopened.is_sane(0, 100)
    assert reopened.overlapping(0, 100) == ENTRIES[:2]
    reopened.append(AbortedTransaction(9, 50, 60, 61))
    assert TxnIndex(index.path).overlapping(0, 100) == [*ENTRIES[:2], AbortedTransaction(9, 50, 60, 61)]


def changed(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + bytes([value]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("at", "value"), [(1, 1), (2 + 8 + 7, 21), (2 + 8, 0x80), (34 + 2 + 16 + 7, 20), (34 + 2 + 16 + 7, 12)]
)
def test_entries_that_make_no_sense_or_no_progress_are_noticed(index: TxnIndex, at: int, value: int) -> None:
    index.path.write_bytes(changed(index.path.read_bytes(), at, value))

    assert not TxnIndex(index.path).is_sane(0, 100)


def test_an_index_of_another_segment_is_noticed(index: TxnIndex) -> None:
    assert not index.is_sane(21, 100)
    assert not index.is_sane(0, 40)
