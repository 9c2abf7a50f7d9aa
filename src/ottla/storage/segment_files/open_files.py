"""A cache of files open for reading, with LRU eviction.

A partition of a thousand segments must not need a thousand file descriptors.
"""

from __future__ import annotations

import errno
import os
import resource
from typing import TYPE_CHECKING, TypeVar

from ottla.storage.segment_files.read_buffers import ReadBuffers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Opened = TypeVar("Opened")


class OpenFiles:
    def __init__(self, limit: int = 512) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, got {limit}")
        # The process needs descriptors for other purposes as well.
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.limit = limit if allowed == resource.RLIM_INFINITY else max(min(limit, allowed // 2), 1)
        self._fds: dict[Path, int] = {}
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
                if refused.errno not in (errno.EMFILE, errno.ENFILE) or not self._fds:
                    raise
                self._close_oldest()

    def _close_oldest(self) -> None:
        os.close(self._fds.pop(next(iter(self._fds))))
