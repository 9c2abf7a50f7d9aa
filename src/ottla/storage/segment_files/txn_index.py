"""The transaction index of a segment: aborted transactions, for read_committed readers.

An entry is Kafka's `AbortedTxn` version 0; the file is created with the first entry.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.storage.files import write_all

if TYPE_CHECKING:
    from pathlib import Path

_ENTRY: Final = struct.Struct(">hqqqq")
_VERSION: Final = 0


_LAST_OFFSET: Final = attrgetter("last_offset")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: list[AbortedTransaction] | None = None

    def __len__(self) -> int:
        if self._entries is None:
            return self.path.stat().st_size // _ENTRY.size if self.path.exists() else 0
        return len(self._entries)

    def append(self, aborted: AbortedTransaction) -> None:
        entries = self._load()
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            write_all(fd, _ENTRY.pack(_VERSION, *aborted), len(entries) * _ENTRY.size)
        finally:
            os.close(fd)
        entries.append(aborted)

    def overlapping(self, from_offset: int, until_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from `from_offset` to below `until_offset`."""
        return [
            aborted
            for aborted in self._load()
            if aborted.last_offset >= from_offset and aborted.first_offset < until_offset
        ]

    def has(self, last_offset: int) -> bool:
        """Whether there is an entry for the marker at this offset."""
        entries = self._load()
        number = bisect_left(entries, last_offset, key=_LAST_OFFSET)
        return number < len(entries) and entries[number].last_offset == last_offset

    def drop_from(self, offset: int) -> None:
        """Drop the transactions that ended at `offset` or later."""
        entries = self._load()
        if not entries or entries[-1].last_offset < offset:
            return
        while entries and entries[-1].last_offset >= offset:
            entries.pop()
        if entries:
            os.truncate(self.path, len(entries) * _ENTRY.size)
        else:
            self.path.unlink()

    def clear(self) -> None:
        self.path.unlink(missing_ok=True)
        self._entries = []

    def is_sane(self, base_offset: int, end_offset: int) -> bool:
        """Whether the file is plausible for a segment with these offsets."""
        if not self.path.exists():
            return True
        data = self.path.read_bytes()
        if len(data) % _ENTRY.size:
            return False
        before = base_offset - 1
        for version, _, first, last, _ in _ENTRY.iter_unpack(data):
            if version != _VERSION or not 0 <= first < last or not before < last < end_offset:
                return False
            before = last
        return True

    def _load(self) -> list[AbortedTransaction]:
        if self._entries is None:
            data = self.path.read_bytes() if self.path.exists() else b""
            whole = len(data) // _ENTRY.size * _ENTRY.size
            self._entries = [AbortedTransaction(*fields[1:]) for fields in _ENTRY.iter_unpack(data[:whole])]
        return self._entries
