"""After a crash the end of a log may be damaged: by a write that was torn, or by bits that changed.

A torn write was not acknowledged. A batch that was there completely may have been: its replica must not be elected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.clock import ManualClock
from ottla.records.batch import HEADER_BYTES
from ottla.storage.config import LogConfig
from ottla.storage.recovery import LastKnown, open_log
from ottla.storage.segment_files.open_files import OpenFiles

from .encrypting import cipher
from .making import batch, headers, read_all

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.storage.cipher import BatchCipher
    from ottla.storage.partition_log import PartitionLog

EPOCH = range(12, 16)
BATCHES = 3
FIELDS = {
    "base offset": range(8),
    "length": range(8, 12),
    "magic": range(16, 17),
    "checksum": range(17, 21),
    "attributes": range(21, 23),
    "last offset delta": range(23, 27),
    "timestamps": range(27, 43),
    "producer": range(43, 57),
    "record count": range(57, 61),
    "records": range(61, 80),
}


class _Log:
    """A log of three batches, whose last one is replaced and which is then recovered, repeatedly."""

    def __init__(self, folder: Path, *, is_encrypted: bool) -> None:
        self.folder = folder
        self._files = OpenFiles()
        self._cipher: BatchCipher | None = cipher() if is_encrypted else None
        log = self._open(LastKnown())
        for number in range(BATCHES):
            log.append(batch(b"%d" % number, size=100))
        segment = log.segments[-1]
        self._path = segment.path
        self._data = segment.path.read_bytes()
        *_, self._last = [position for position, _ in segment.headers(0)]
        self.last = self._data[self._last :]
        log.abandon()

    def _open(self, known: LastKnown) -> PartitionLog:
        return open_log(self.folder, LogConfig(flush="ack"), ManualClock(), self._files, known, self._cipher)

    def lacks_records(self, last: bytes, *, synced: int = 0) -> bool:
        """Whether the log lacks records after a crash that left this in place of its last batch.

        `synced` is the recovery point of the checkpoint.
        """
        for path in self.folder.iterdir():
            path.unlink()
        self._path.write_bytes(self._data[: self._last] + last)
        log = self._open(LastKnown(recovery_point=synced))
        assert [each.base_offset for each in headers(read_all(log))] == list(range(log.next_offset))
        assert log.next_offset == BATCHES - 1, "the damaged batch is not served"
        lacks = log.lacks_records
        log.abandon()
        return lacks


@pytest.fixture(params=[False, True], ids=["plain", "encrypted"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> _Log:
    return _Log(tmp_path / "t-0", is_encrypted=request.param)


def _flipped(data: bytes, byte: int, bit: int) -> bytes:
    changed = bytearray(data)
    changed[byte] ^= 1 << bit
    return bytes(changed)


@pytest.mark.parametrize("synced", [0, BATCHES], ids=["unsynced", "synced"])
@pytest.mark.parametrize("field", FIELDS)
def test_a_flipped_bit_of_the_last_batch_is_not_taken_for_a_torn_write(log: _Log, field: str, synced: int) -> None:
    missed = [
        (byte, bit)
        for byte in FIELDS[field]
        for bit in range(8)
        if not log.lacks_records(_flipped(log.last, byte, bit), synced=synced)
    ]

    assert missed == []


def test_the_leader_epoch_is_the_only_part_of_a_header_that_nothing_covers() -> None:
    covered = {byte for field in FIELDS.values() for byte in field}

    assert set(range(HEADER_BYTES)) - covered == set(EPOCH)


@pytest.mark.parametrize("rest", [b"", bytes(7), bytes(4096)], ids=["cut", "some zeros", "a page of zeros"])
def test_a_torn_write_of_any_length_lacks_no_record(log: _Log, rest: bytes) -> None:
    lengths = range(1, len(log.last) - len(rest)) if len(rest) < len(log.last) else range(1, 17)

    assert [length for length in lengths if log.lacks_records(log.last[:length] + rest)] == []


def test_a_damaged_length_is_found_before_a_torn_write(log: _Log) -> None:
    torn = log.last[: HEADER_BYTES + 5]

    assert log.lacks_records(_flipped(log.last, 10, 3) + torn)
    assert log.lacks_records(_flipped(log.last, 16, 3) + torn)
