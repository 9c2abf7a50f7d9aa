"""Flushing a log, in steps so that the fsync can run in another thread.

The log's owner starts a flush, any thread runs it, and the owner finishes it. A failed fsync is final: the
kernel may have dropped the pages and marked them clean, so a second one that succeeds proves nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.storage.config import LogConfig


class Flush:
    """A flush in progress. Records below `until_offset` are durable once it and all earlier flushes have succeeded."""

    def __init__(self, until_offset: int, fds: list[int]) -> None:
        self.until_offset = until_offset
        self.error: OSError | None = None
        self.is_finished = False
        self._fds = fds

    def run(self) -> None:
        """Run the fsyncs. Never raises; failures are stored in `error`."""
        try:
            for fd in self._fds:
                os.fsync(fd)
        except OSError as failed:
            self.error = failed
        finally:
            self.discard()

    def must_have_succeeded(self) -> None:
        if self.error is not None:
            raise self.error

    def discard(self) -> None:
        while self._fds:
            os.close(self._fds.pop())


def is_flush_due(config: LogConfig, since_last_s: float, *, has_full_segments: bool) -> bool:
    """Whether the flush policy requires a flush of a dirty log, this long after the start of the last one."""
    match config.flush:
        case "ack":
            return True
        case "interval":
            return since_last_s * 1000 >= config.flush_interval_ms
        case "os":
            # Flushes only rolled segments, so that a start after a crash need not recover every segment.
            return has_full_segments


def all_or_none(opening: Iterable[int]) -> list[int]:
    """Open descriptors one by one; if one fails, the others are closed."""
    fds: list[int] = []
    try:
        fds.extend(opening)
    except OSError:
        Flush(0, fds).discard()
        raise
    return fds


def sync_all(opening: Iterable[int]) -> None:
    """Sync and close these files."""
    flush = Flush(0, all_or_none(opening))
    flush.run()
    flush.must_have_succeeded()
