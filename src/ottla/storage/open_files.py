"""Files kept open for reading: at most so many, the longest unused closed first.

A partition of a thousand segments must not need a thousand file descriptors.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class OpenFiles:
    def __init__(self, limit: int = 512) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, got {limit}")
        self._limit = limit
        self._fds: dict[Path, int] = {}

    def get(self, path: Path) -> int:
        """A descriptor for reading this file. Valid until the next call: do not keep it."""
        fd = self._fds.pop(path, None)
        if fd is None:
            while len(self._fds) >= self._limit:
                self._close_oldest()
            fd = self._open(path)
        self._fds[path] = fd
        return fd

    def forget(self, path: Path) -> None:
        """Close this file, because it is about to be renamed, replaced or removed."""
        fd = self._fds.pop(path, None)
        if fd is not None:
            os.close(fd)

    def close(self) -> None:
        while self._fds:
            self._close_oldest()

    def __len__(self) -> int:
        return len(self._fds)

    def _open(self, path: Path) -> int:
        flags = os.O_RDONLY | os.O_CLOEXEC
        while True:
            try:
                return os.open(path, flags)
            except OSError as refused:
                # Somebody else took the process's last descriptors: give one back rather than fail the read.
                if refused.errno not in (errno.EMFILE, errno.ENFILE) or not self._fds:
                    raise
                self._close_oldest()

    def _close_oldest(self) -> None:
        os.close(self._fds.pop(next(iter(self._fds))))
