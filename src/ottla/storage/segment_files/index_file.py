"""A sparse index: pairs of ascending numbers, in fixed-size entries.

Entries are appended in memory and written to the file in bulk, since recovery can rebuild them
from the log. Those in the file are found by binary search with `pread`: an unused index takes no memory,
and a failing disk is an error rather than a SIGBUS.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left, bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from ottla.storage.files import write_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ottla.storage.segment_files.open_files import OpenFiles

Entry = tuple[int, int]

OFFSET_ENTRY: Final = struct.Struct(">ii")
"""A relative offset, and the position of the batch that ends with it."""
TIME_ENTRY: Final = struct.Struct(">qi")
"""The largest timestamp so far in the segment, and the relative offset of its batch."""

_FIRST: Final = itemgetter(0)
_SECOND: Final = itemgetter(1)


class IndexFile:
    def __init__(self, path: Path, layout: struct.Struct, files: OpenFiles, *, is_new: bool) -> None:
        self.path = path
        self._layout = layout
        self._files = files
        self._unwritten: list[Entry] = []
        self._written = 0 if is_new else path.stat().st_size // layout.size
        self._last: Entry | None = self._read(self._written - 1) if self._written else None

    def __len__(self) -> int:
        return self._written + len(self._unwritten)

    @property
    def size(self) -> int:
        return len(self) * self._layout.size

    @property
    def unwritten(self) -> int:
        """The number of entries that are only in memory."""
        return len(self._unwritten)

    @property
    def last(self) -> Entry | None:
        return self._last

    def append(self, first: int, second: int) -> None:
        self._last = (first, second)
        self._unwritten.append(self._last)

    def find(self, first: int) -> Entry | None:
        """The last entry whose first number is at most `first`."""
        if self._unwritten and first >= self._unwritten[0][0]:
            return self._unwritten[bisect_right(self._unwritten, first, key=_FIRST) - 1]
        before = self._count_written(lambda entry: entry[0] <= first)
        return self._read(before - 1) if before else None

    def _count_written(self, is_before: Callable[[Entry], bool]) -> int:
        """The number of entries in the file before the first unwritten one."""
        low, high = 0, self._written
        while low < high:
            middle = (low + high) // 2
            if is_before(self._read(middle)):
                low = middle + 1
            else:
                high = middle
        return low

    def entries(self) -> list[Entry]:
        data = self.path.read_bytes()[: self._written * self._layout.size] if self._written else b""
        return [*self._layout.iter_unpack(data), *self._unwritten]

    def drop_from(self, second: int) -> Entry | None:
        """Remove the entries whose second number is `second` or more; returns the first removed entry, if any."""
        dropped = self._unwritten[bisect_left(self._unwritten, second, key=_SECOND) :]
        first = dropped[0] if dropped else None
        del self._unwritten[len(self._unwritten) - len(dropped) :]
        if not self._unwritten:
            keep = self._count_written(lambda entry: entry[1] < second)
            if keep < self._written:
                first = self._read(keep)
                self._written = keep
                os.truncate(self.path, keep * self._layout.size)
        if self._unwritten:
            self._last = self._unwritten[-1]
        else:
            self._last = self._read(self._written - 1) if self._written else None
        return first

    def write_out(self) -> None:
        """Write the entries to the file. Data behind them, for example after a crash, is truncated."""
        data = b"".join(self._layout.pack(*entry) for entry in self._unwritten)
        end = self._written * self._layout.size
        fd = self._files.with_room(lambda: os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        try:
            write_all(fd, data, end)
            os.ftruncate(fd, end + len(data))
        finally:
            os.close(fd)
        self._written += len(self._unwritten)
        self._unwritten.clear()

    def _read(self, number: int) -> Entry:
        size = self._layout.size
        data = os.pread(self._files.get(self.path), size, number * size)
        if len(data) < size:
            raise OSError(f"{self.path.name} ends before entry {number}")
        first, second = self._layout.unpack(data)
        return first, second
