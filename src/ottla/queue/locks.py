"""File locks, held from construction until `release`, or until the process ends.

v-queue locks the same files with flock, so they exclude each other.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.queue.errors import AlreadyOpen, FailOpen
from ottla.queue.files import open_to_write, read_at, write_at

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    # A locked byte cannot be read there, so it is one far behind the text.
    _LOCKED_BYTE: Final = 1 << 30

    def _lock(fd: int) -> None:
        os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def _unlock(fd: int) -> None:
        os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)


class Lock:
    """The exclusive lock on this file; raises AlreadyOpen with the process id if it is taken."""

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._fd = self._acquire(what)
        # Informational only: a full disk must not prevent the start.
        with suppress(OSError):
            os.ftruncate(self._fd, 0)
            write_at(self._fd, f"{os.getpid()}\n".encode(), 0)

    def _acquire(self, what: str) -> int:
        while True:
            fd = open_to_write(self._path)
            try:
                _lock(fd)
            except (BlockingIOError, PermissionError):
                holder = read_at(fd, 32, 0).strip()
                os.close(fd)
                raise AlreadyOpen(what, int(holder) if holder.isdigit() else None) from None
            except OSError as refused:
                os.close(fd)
                raise FailOpen(f"{self._path} cannot be locked: {refused.strerror}") from refused
            if self._is_still_there(fd):
                return fd
            # The previous holder removed it between our open and our lock.
            os.close(fd)

    def _is_still_there(self, fd: int) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(fd))
        except FileNotFoundError:
            return False

    def release(self, *, remove: bool = False) -> None:
        with suppress(OSError):
            os.ftruncate(self._fd, 0)
        if remove and sys.platform != "win32":
            with suppress(OSError):
                self._path.unlink()
        # Explicit, not left to close: a forked process may have the file open, too.
        _unlock(self._fd)
        os.close(self._fd)
        if remove and sys.platform == "win32":
            # There, an open file cannot be removed, and one opened by another process stays.
            with suppress(OSError):
                self._path.unlink()
