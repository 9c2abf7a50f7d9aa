"""Simulated disks: real files in memory behind the functions of `os`, which track unsynced writes.

A power cut reverts all or part of the writes since the last fsync. Errors can be injected by path.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections import namedtuple
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from pathlib import Path

_REAL: Final = {
    name: getattr(os, name)
    for name in (
        "open",
        "close",
        "dup",
        "pwrite",
        "fsync",
        "ftruncate",
        "truncate",
        "rename",
        "replace",
        "unlink",
        "remove",
    )
}
_REAL_STATVFS: Final = os.statvfs
_Room = namedtuple("_Room", ["f_bavail", "f_blocks", "f_bfree", "f_frsize", "f_bsize"])
_SECTOR: Final = 512
_logger: Final = logging.getLogger(__name__)


@dataclass
class _Write:
    """How to take it back."""

    position: int
    size: int
    before: bytes
    size_before: int


@dataclass
class _File:
    unsynced: list[_Write] = field(default_factory=list)


class Disk:
    """The disk of one node: the files under its folder."""

    def __init__(self, folder: Path, chance: random.Random, note: Callable[..., None]) -> None:
        self.folder = str(folder)
        self.is_dead = False
        self.errors: dict[str, int] = {}
        """By the beginning of a path within the folder: what every write and sync there fails with."""
        self._chance = chance
        self._note = note
        self._files: dict[int, _File] = {}
        """By inode."""
        self._fds: dict[int, str] = {}

    # What the functions of `os` come to

    def check(self, path: str, *, grows: bool = False) -> None:
        if self.is_dead:
            raise OSError(errno.EIO, "the node is gone", path)
        if self.errors:
            relative = path[len(self.folder) + 1 :] + "/"
            for prefix, error in self.errors.items():
                if relative.startswith(prefix) and (grows or error != errno.ENOSPC):
                    raise OSError(error, os.strerror(error), path)

    def opened(self, fd: int, path: str) -> None:
        self._fds[fd] = path

    def closed(self, fd: int) -> None:
        self._fds.pop(fd, None)

    def path_of(self, fd: int) -> str:
        return self._fds[fd]

    def will_write(self, fd: int, position: int, size: int) -> None:
        stat = os.fstat(fd)
        overlap = min(size, max(stat.st_size - position, 0))
        before = os.pread(fd, overlap, position) if overlap else b""
        self._file(stat.st_ino).unsynced.append(_Write(position, size, before, stat.st_size))
        self._note("write", self._fds[fd][len(self.folder) - 1 :], position, size)

    def will_truncate(self, fd: int, size: int) -> None:
        stat = os.fstat(fd)
        if stat.st_size > size:
            before = os.pread(fd, stat.st_size - size, size)
            self._file(stat.st_ino).unsynced.append(_Write(size, 0, before, stat.st_size))

    def synced(self, fd: int) -> None:
        self._files.pop(os.fstat(fd).st_ino, None)
        self._note("sync", self._fds[fd][len(self.folder) - 1 :])

    def _file(self, inode: int) -> _File:
        return self._files.setdefault(inode, _File())

    # Faults

    def die(self) -> None:
        """Detach the killed process: its remaining code reaches no file."""
        self.is_dead = True
        nowhere = _REAL["open"](os.devnull, os.O_RDWR)
        for fd in self._fds:
            os.dup2(nowhere, fd)
            _owners.pop(fd, None)
        _REAL["close"](nowhere)

    def lose_unsynced(self) -> int:
        """Cut the power of the machine after the process died; returns the number of lost writes."""
        lost = 0
        paths = {os.stat(path).st_ino: path for path in _files_in(self.folder)}
        for inode, file in self._files.items():
            path = paths.get(inode)
            if path is not None and file.unsynced:
                keep = self._chance.choice((0, 0, len(file.unsynced), self._chance.randrange(len(file.unsynced) + 1)))
                lost += len(file.unsynced) - keep
                if keep < len(file.unsynced):
                    _logger.info(
                        "%s loses %d writes from %d on", path, len(file.unsynced) - keep, file.unsynced[keep].position
                    )
                self._take_back(path, file.unsynced[keep:])
        self._files.clear()
        return lost

    def _take_back(self, path: str, writes: list[_Write]) -> None:
        if not writes:
            return
        first = writes[0]
        torn = b""
        if first.size > _SECTOR and self._chance.random() < 0.5:
            keep = self._chance.randrange(1, first.size // _SECTOR + 1) * _SECTOR
            with open(path, "rb") as file:
                file.seek(first.position)
                torn = file.read(min(keep, first.size))
        with open(path, "r+b") as file:
            for write in reversed(writes):
                file.seek(write.position)
                file.write(write.before)
                file.truncate(write.size_before)
            if torn:
                file.seek(first.position)
                file.write(torn)

    def flip_a_bit(self, wanted: Callable[[str], bool]) -> str | None:
        """In one of the wanted files: where, or None if there is none."""
        candidates = [path for path in _files_in(self.folder) if wanted(path) and os.stat(path).st_size]
        if not candidates:
            return None
        path = self._chance.choice(candidates)
        position = self._chance.randrange(os.stat(path).st_size)
        with self._by_hand(), open(path, "r+b") as file:
            file.seek(position)
            [byte] = file.read(1)
            file.seek(position)
            file.write(bytes([byte ^ (1 << self._chance.randrange(8))]))
        return f"{path[len(self.folder) + 1 :]} at {position}"

    def wipe(self) -> None:
        with self._by_hand():
            shutil.rmtree(self.folder)
            os.mkdir(self.folder)
        self._files.clear()

    def save(self, to: str) -> None:
        with self._by_hand():
            shutil.copytree(self.folder, to)

    def restore(self, saved: str) -> None:
        with self._by_hand():
            shutil.rmtree(self.folder)
            shutil.copytree(saved, self.folder)
        self._files.clear()

    @contextmanager
    def _by_hand(self) -> Iterator[None]:
        """Modify the disk from outside its node."""
        del _disks[self.folder]
        try:
            yield
        finally:
            _disks[self.folder] = self

    def reopened(self) -> Disk:
        """For the next process on it."""
        disk = Disk(self.folder, self._chance, self._note)  # type: ignore[arg-type]
        disk._files = self._files
        return disk


def _files_in(folder: str) -> list[str]:
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)


_disks: dict[str, Disk] = {}
"""By folder."""
_owners: dict[int, Disk] = {}
"""By descriptor."""
_root = ""


def mount(disk: Disk) -> None:
    _disks[disk.folder] = disk


def _disk_of(path: Any) -> Disk | None:
    if isinstance(path, int):
        return _owners.get(path)
    text = os.fspath(path)
    if not isinstance(text, str) or not text.startswith(_root):
        return None
    end = text.find("/", len(_root) + 1)
    return _disks.get(text if end < 0 else text[:end])


def _open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    disk = None if dir_fd is not None else _disk_of(path)
    if disk is not None:
        disk.check(os.fspath(path), grows=bool(flags & os.O_CREAT) and not os.path.exists(path))
    fd: int = _REAL["open"](path, flags, mode, dir_fd=dir_fd)
    if disk is not None:
        _owners[fd] = disk
        disk.opened(fd, os.fspath(path))
        if flags & os.O_TRUNC:
            disk.will_truncate(fd, 0)
    return fd


def _dup(fd: int) -> int:
    copy: int = _REAL["dup"](fd)
    if (disk := _owners.get(fd)) is not None:
        _owners[copy] = disk
        disk.opened(copy, disk.path_of(fd))
    return copy


def _close(fd: int) -> None:
    disk = _owners.pop(fd, None)
    if disk is not None:
        disk.closed(fd)
    _REAL["close"](fd)


def _pwrite(fd: int, data: Any, position: int) -> int:
    disk = _owners.get(fd)
    if disk is not None:
        disk.check(disk.path_of(fd), grows=True)
        disk.will_write(fd, position, len(data))
    written: int = _REAL["pwrite"](fd, data, position)
    return written


def _fsync(fd: int) -> None:
    disk = _owners.get(fd)
    if disk is not None:
        disk.check(disk.path_of(fd))
        disk.synced(fd)


def _ftruncate(fd: int, size: int) -> None:
    disk = _owners.get(fd)
    if disk is not None:
        disk.check(disk.path_of(fd))
        disk.will_truncate(fd, size)
    _REAL["ftruncate"](fd, size)


def _truncate(path: Any, size: int) -> None:
    fd = _open(path, os.O_RDWR)
    try:
        _ftruncate(fd, size)
    finally:
        _close(fd)


def _checked(real: Callable[..., Any]) -> Callable[..., Any]:
    def call(path: Any, *args: Any, **options: Any) -> Any:
        if options.get("dir_fd") is None and (disk := _disk_of(path)) is not None:
            disk.check(os.fspath(path))
        return real(path, *args, **options)

    return call


def install(root: Path) -> None:
    """Put everything under this folder on simulated disks."""
    global _root  # noqa: PLW0603
    _root = str(root)
    os.open, os.close, os.pwrite, os.fsync = _open, _close, _pwrite, _fsync  # type: ignore[assignment]
    os.dup = _dup
    os.ftruncate, os.truncate = _ftruncate, _truncate
    for name in ("rename", "replace", "unlink", "remove", "mkdir"):
        setattr(os, name, _checked(getattr(os, name)))
    os.statvfs = lambda path: _Room(1 << 28, 1 << 28, 1 << 28, 4096, 4096) if _disk_of(path) else _REAL_STATVFS(path)  # type: ignore[assignment, return-value]
