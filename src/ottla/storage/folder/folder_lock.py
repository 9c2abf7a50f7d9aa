"""Ensures that a data folder is used by one process only."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.core.errors import DataDirError

if TYPE_CHECKING:
    from pathlib import Path

LOCK: Final = ".lock"

# Closing any descriptor of a file releases the process's record locks on it, so the holder of a folder must not open
# the lock file again. (The process id is stored because a forked process inherits this set, but not the lock.)
_held: Final[set[tuple[int, int, int]]] = set()


class FolderLock:
    """Held from construction until `release`, or until the process ends."""

    def __init__(self, folder: Path) -> None:
        identity = folder.stat()
        self._key = (os.getpid(), identity.st_dev, identity.st_ino)
        if self._key in _held:
            raise _in_use(folder, f"process {os.getpid()}, this one")
        try:
            self._fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as refused:
            raise DataDirError(f"{folder} cannot be written to: {refused.strerror}") from None
        try:
            # Two locks: Apache Kafka takes a record lock on this file, but copying the folder from within this process
            # releases it, unlike the other lock.
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            raise _in_use(folder, f"process {holder}" if holder.isdigit() else "another process") from None
        _held.add(self._key)
        # The content is informational: a full disk must not prevent the start.
        with suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        _held.discard(self._key)
        with suppress(OSError):
            os.ftruncate(self._fd, 0)
        # Released explicitly, not by closing: a forked process may have the file open as well.
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        os.close(self._fd)


def _in_use(folder: Path, holder: str) -> DataDirError:
    return DataDirError(f"{folder} is in use by {holder}; stop it, or choose another data folder")
