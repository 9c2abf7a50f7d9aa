"""The open files of logs: a cache of those open for reading, with LRU eviction, and a limit of those open for appends.

A partition of a thousand segments must not need a thousand file descriptors, nor must a thousand partitions.
"""

from __future__ import annotations

import errno
import os
import resource
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ottla.storage.segment_files.read_buffers import ReadBuffers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Opened = TypeVar("Opened")

_APPENDING_SHARE: Final = 2
_READING_SHARE: Final = 4


class Appending(Protocol):
    """Has a descriptor for appends, and opens it again when needed."""

    def close_for_now(self) -> None: ...


def most_appending(allowed: int) -> int | None:
    """The number of files that are kept open for appends with this limit of descriptors; None for no limit."""
    return None if allowed == resource.RLIM_INFINITY else max(allowed // _APPENDING_SHARE, 1)


def shortage_for(partitions: int, allowed: int | None = None) -> str | None:
    """What too few descriptors mean for appends to this many partitions; None if there are enough."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if allowed is None else allowed
    most = most_appending(allowed)
    if most is None or partitions <= most:
        return None
    return (
        f"{partitions} partitions, but with a limit of {allowed} file descriptors only {most} of their files stay open "
        "for appends: appends to the others open a file each time and are slower"
    )


class OpenFiles:
    def __init__(self, limit: int = 512) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, got {limit}")
        # The process needs descriptors for other purposes as well.
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.limit = limit if allowed == resource.RLIM_INFINITY else max(min(limit, allowed // _READING_SHARE), 1)
        self._fds: dict[Path, int] = {}
        self.most_appending = most_appending(allowed)
        self._appending: dict[Appending, None] = {}
        self.buffers = ReadBuffers()
        self.on_refused_write: Callable[[OSError], None] = lambda _: None
        """Called with the error of each failed append to one of these files."""

    def get(self, path: Path) -> int:
        """A descriptor for reading this file. Valid until the next call."""
        fd = self._fds.pop(path, None)
        if fd is None:
            while len(self._fds) >= self.limit:
                self._close_oldest()
            fd = self.with_room(lambda: os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        self._fds[path] = fd
        return fd

    def forget(self, path: Path) -> None:
        """Close this file before it is renamed, replaced or removed."""
        fd = self._fds.pop(path, None)
        if fd is not None:
            os.close(fd)

    @property
    def has_room_to_append(self) -> bool:
        return self.most_appending is None or len(self._appending) < self.most_appending

    def add_appending(self, file: Appending) -> None:
        """Count a file that was opened for appends; beyond the limit the one that was opened first is closed."""
        while self._appending and not self.has_room_to_append:
            next(iter(self._appending)).close_for_now()
        self._appending[file] = None

    def remove_appending(self, file: Appending) -> None:
        self._appending.pop(file, None)

    def join(self, other: OpenFiles) -> None:
        """Share the files, buffers and limit of another cache from now on: a log was opened with this one in another
        thread.
        """
        self.close()
        self._fds, self.limit, self.on_refused_write = other._fds, other.limit, other.on_refused_write
        self.buffers.join(other.buffers)

    def close(self) -> None:
        while self._fds:
            self._close_oldest()

    def __len__(self) -> int:
        return len(self._fds)

    def with_room(self, open_some: Callable[[], Opened]) -> Opened:
        """Run an operation that needs descriptors; if none are left, close some and retry."""
        while True:
            try:
                return open_some()
            except OSError as refused:
                if refused.errno not in (errno.EMFILE, errno.ENFILE) or not (self._fds or self._appending):
                    raise
                if self._fds:
                    self._close_oldest()
                else:
                    next(iter(self._appending)).close_for_now()

    def _close_oldest(self) -> None:
        os.close(self._fds.pop(next(iter(self._fds))))
