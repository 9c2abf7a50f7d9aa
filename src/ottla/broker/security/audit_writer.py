"""Writes the audit file in a separate thread, so that a slow disk does not hold up the broker."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.broker.security.audit_file import AuditFile

_logger: Final = logging.getLogger(__name__)

_MOST_LINES: Final = 10_000
_MOST_BYTES: Final = 8 << 20
"""The maximum size of lines that were not written to the disk yet."""
_CLOSE_S: Final = 10.0
_SLOW_S: Final = 5.0
_RETRY_S: Final = 1.0


class AuditWriter:
    """Lines are written in order. While the disk hangs they are queued up to a limit; lines beyond it are dropped and
    counted.
    """

    name = "file"

    def __init__(self, file: AuditFile) -> None:
        self._file = file
        self._lines: deque[tuple[bytes, float]] = deque()
        self._held_bytes = 0
        self._overflowed = 0
        self._writing_since_s: float | None = None
        self._is_slow = False
        self._is_closing = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @property
    def dropped(self) -> int:
        return self._overflowed + self._file.dropped

    @property
    def waiting(self) -> int:
        """The number of lines that are not in the file yet."""
        return len(self._lines) + self._file.waiting

    def write(self, line: bytes, now_s: float) -> None:
        with self._changed:
            self._report_if_slow()
            if len(self._lines) >= _MOST_LINES or self._held_bytes + len(line) > _MOST_BYTES:
                self._overflowed += 1
                return
            self._lines.append((line, now_s))
            self._held_bytes += len(line)
            self._changed.notify_all()
        if self._thread is None:
            # A daemon thread: a disk that hangs permanently must not keep the process from ending.
            self._thread = threading.Thread(target=self._run, name="ottla-audit", daemon=True)
            self._thread.start()

    def flush(self, timeout_s: float = _CLOSE_S) -> bool:
        """Wait until everything is in the file; returns whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._lines and self._writing_since_s is None, timeout_s)

    def close(self) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)
            if self._thread.is_alive():
                # The file stays open: the thread may still be writing to it.
                self._overflowed += len(self._lines)
                _logger.error("%s: lost %d lines of the audit log: the disk hangs", self._file.path, self.waiting)
                return
        self._file.close()

    def _report_if_slow(self) -> None:
        since_s = self._writing_since_s
        is_slow = since_s is not None and time.monotonic() - since_s > _SLOW_S
        if is_slow and not self._is_slow:
            _logger.error(
                "%s: the disk does not take the audit log; up to %d lines are kept", self._file.path, _MOST_LINES
            )
        self._is_slow = is_slow

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._lines and not self._is_closing:
                    self._changed.wait(_RETRY_S if self._file.waiting else None)
                if not self._lines and self._is_closing:
                    return
                lines, self._lines, self._held_bytes = self._lines, deque(), 0
                self._writing_since_s = time.monotonic()
            if lines:
                for line, now_s in lines:
                    self._file.write(line, now_s)
            else:
                self._file.retry(time.time())
            with self._changed:
                self._writing_since_s = None
                self._changed.notify_all()
