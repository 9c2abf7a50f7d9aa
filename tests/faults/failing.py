"""Failing disks: system calls that return an error for certain files, and a device that really fails."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from .mounting import CannotMount, mounted, tmpfs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BY_NAME = ("open", "unlink", "rename", "replace", "truncate")


@contextmanager
def failing(call: str, name: str, times: int = 1, code: int = errno.EIO) -> Iterator[list[str]]:
    """Make a system call fail for files whose path ends with `name`; yields the list of affected paths."""
    refused: list[str] = []
    really = getattr(os, call)

    def wrapped(target: Any, *args: Any, **options: Any) -> Any:
        path = str(target) if call in _BY_NAME else os.readlink(f"/proc/self/fd/{target}")
        if path.endswith(name) and len(refused) < times:
            refused.append(path)
            raise OSError(code, os.strerror(code), path)
        return really(target, *args, **options)

    setattr(os, call, wrapped)
    try:
        yield refused
    finally:
        setattr(os, call, really)


class FailingDevice:
    """A file system on a thin disk: once its storage runs out, the kernel cannot write dirty pages.

    It reports that to the next fsync.
    """

    def __init__(self, folder: Path, backing: Path) -> None:
        self.folder = folder
        self._ballast = backing / "ballast"

    def fail(self) -> None:
        with self._ballast.open("wb", buffering=0) as ballast, suppress(OSError):
            while ballast.write(bytes(4096)):
                pass
        assert os.statvfs(self._ballast).f_bavail == 0

    def heal(self) -> None:
        self._ballast.unlink()


@contextmanager
def failing_device(folder: Path) -> Iterator[FailingDevice]:
    if shutil.which("mkfs.ext4") is None:
        raise CannotMount("mkfs.ext4 is needed to make a file system")
    with tmpfs(folder / "backing", "8m") as backing:
        image = backing / "image"
        with image.open("wb") as sparse:
            sparse.truncate(64 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", str(image)], check=True, capture_output=True)
        with mounted(folder / "device", "-o", "loop,errors=continue", str(image)) as device:
            yield FailingDevice(device, backing)
