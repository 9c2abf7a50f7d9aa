"""Batches and folders for the fault tests, and reading them back."""

from __future__ import annotations

import hashlib
import os
import shutil
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ottla.core.clock import ManualClock
from ottla.records.batch import read_header
from ottla.records.encode import BatchBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.storage.folder.data_dir import DataDir
    from ottla.storage.partition_log import PartitionLog

NOW = ManualClock().now_ms()
ROUNDS = float(os.environ.get("FAULT_ROUNDS", "1"))
"""Multiplier of random rounds: FAULT_ROUNDS=10 takes ten times as long."""
PLACED_BYTES = 16
"""A log writes the base offset and the leader epoch into the first bytes of a batch; the rest stays as it was sent."""


class Read(NamedTuple):
    """A batch as a consumer receives it."""

    base_offset: int
    last_offset: int
    data: bytes

    @property
    def sent(self) -> bytes:
        return self.data[PLACED_BYTES:]


class Producer(NamedTuple):
    id: int = -1
    epoch: int = -1
    sequence: int = -1
    is_transactional: bool = False


NOBODY = Producer()


def batch(value: bytes = b"v", *, count: int = 1, at: int = NOW, by: Producer = NOBODY) -> bytearray:
    """A batch of `count` records with this value; `at` is the first one's timestamp, the others follow."""
    builder = BatchBuilder()
    for number in range(count):
        builder.append(at + number, None, value)
    return builder.build(
        producer_id=by.id, producer_epoch=by.epoch, base_sequence=by.sequence, is_transactional=by.is_transactional
    )


def split(data: bytes | memoryview) -> Iterator[Read]:
    at = 0
    while at < len(data):
        header = read_header(data, at)
        yield Read(header.base_offset, header.last_offset, bytes(data[at : at + header.size]))
        at += header.size


def read_all(log: PartitionLog, max_bytes: int = 1 << 20) -> list[Read]:
    """All batches from the start; each must follow the previous one."""
    found: list[Read] = []
    offset = log.start_offset
    while data := log.read(offset, max_bytes):
        found += split(data)
        offset = found[-1].last_offset + 1
    assert offset == log.next_offset, f"reading stops at {offset} of {log!r}"
    for before, after in pairwise(found):
        assert after.base_offset == before.last_offset + 1, f"a gap behind {before.last_offset} in {log!r}"
    return found


def fingerprint(folder: Path) -> dict[str, str]:
    """The contents of a folder: type and bytes of each file by name."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        found[str(path.relative_to(folder))] = f"{path.lstat().st_mode:o} {content}"
    return found


def leave(data_dir: DataDir) -> None:
    """Release a data folder like a killed process: nothing is written."""
    for log in data_dir.logs.values():
        log.abandon()
    data_dir._files.close()
    data_dir._lock.release()


class Kept:
    """A copy of the files of a folder, to restore after each experiment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = {path.name: path.read_bytes() for path in folder.iterdir()}

    def put_back(self, **changed: bytes) -> None:
        for path in self.folder.iterdir():
            if path.name not in self.files:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, data in self.files.items():
            path = self.folder / name
            if path.is_dir():
                path.rmdir()
            path.write_bytes(changed.get(name, data))
