"""One process per data folder."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Final

from ottla.core.errors import DataDirError

if TYPE_CHECKING:
    from pathlib import Path

LOCK: Final = ".lock"


class FolderLock:
    """Held from construction until `release`, or until the process ends however it ends."""

    def __init__(self, folder: Path) -> None:
        try:
            self._fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as refused:
            raise DataDirError(f"{folder} cannot be written to: {refused.strerror}") from None
        try:
            # Two locks: a record lock is what Apache Kafka takes on this very file, but it does not keep out a
            # second opener in this process, which flock does.
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            by = f"process {holder}" if holder.isdigit() else "another process"
            raise DataDirError(f"{folder} is in use by {by}; stop it, or choose another data folder") from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.ftruncate(self._fd, 0)
        os.close(self._fd)
