"""Storage of archives: the interface of folders and object stores, and the folder."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from ottla.core.errors import ConfigError
from ottla.spark.archive.errors import ArchiveInUse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    import pyarrow as pa

_SCRATCH: Final = "_scratch"
_LOCK: Final = "_lock"


class Place(Protocol):
    """The files of one topic; names are relative to its folder."""

    def sizes(self) -> dict[str, int]:
        """All files that are published, with their sizes."""

    def open(self, name: str) -> pa.NativeFile:
        """Raises FileNotFoundError if it does not exist."""

    def remove(self, name: str) -> None:
        """May be repeated."""

    def held(self) -> AbstractContextManager[ArchiveLock]:
        """Acquire the exclusive right to write."""


class ArchiveLock(Protocol):
    """The right to write to a place."""

    scratch: Path
    """Where files are made before they are published."""

    def publish(self, made: Path, name: str) -> None:
        """Publish a file atomically and durably under this name."""

    def confirm(self) -> None:
        """Raises ArchiveInUse if another process holds the lease now."""


class FolderPlace:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def sizes(self) -> dict[str, int]:
        found = {}
        for path in self._folder.glob("date=*/*.parquet"):
            try:
                found[f"{path.parent.name}/{path.name}"] = path.stat().st_size
            except FileNotFoundError:
                continue  # merged into another in between
        return found

    def open(self, name: str) -> pa.NativeFile:
        return (self._folder / name).open("rb")

    def remove(self, name: str) -> None:
        path = self._folder / name
        path.unlink(missing_ok=True)
        with suppress(OSError):  # it is not empty, or gone
            path.parent.rmdir()

    @contextmanager
    def held(self) -> Iterator[FolderArchiveLock]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / _LOCK).open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ArchiveInUse(f"another process is archiving to {self._folder}") from None
            scratch = self._folder / _SCRATCH
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            try:
                yield FolderArchiveLock(self._folder, scratch)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)


class FolderArchiveLock:
    def __init__(self, folder: Path, scratch: Path) -> None:
        self._folder = folder
        self.scratch = scratch

    def publish(self, made: Path, name: str) -> None:
        target = self._folder / name
        target.parent.mkdir(exist_ok=True)
        _sync(made)
        made.rename(target)
        _sync(target.parent)
        _sync(self._folder)

    def confirm(self) -> None:
        """The lock is the operating system's, and ends with the process."""


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def place_of(location: str, topic: str) -> Place:
    """The place of a topic's files in an archive: a folder, or a URL such as s3://bucket/prefix."""
    scheme, colon, rest = location.partition("://")
    if not colon:
        return FolderPlace(Path(location).absolute() / topic)
    if scheme == "file":
        return FolderPlace(Path(rest) / topic)
    try:
        from ottla.spark.archive.objects import ObjectPlace
    except ImportError:
        raise ConfigError(f"{location} needs obstore; run: pip install 'ottla[s3]'") from None
    return ObjectPlace.at(f"{location.rstrip('/')}/{topic}")
