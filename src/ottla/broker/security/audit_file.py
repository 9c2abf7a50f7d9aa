"""The audit log's file: appended to, rotated by size and age."""

from __future__ import annotations

import logging
import os
import stat
import sys
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.broker.security.audit_chain import Chain, link_of
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_logger: Final = logging.getLogger(__name__)

_MODE: Final = 0o600
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
_TAIL_BYTES: Final = 1 << 20
"""An upper bound of the length of a line."""
_MOST_KEPT: Final = 10_000
"""The maximum number of lines that wait for disk space."""


class Rotation(msgspec.Struct, frozen=True):
    max_bytes: int = 0
    """Rotate before this size is exceeded; 0 for never."""
    max_age_s: float = 0.0
    """Rotate when the first line is this old; 0 for never."""
    kept: int = 0
    """Rotated files to keep; 0 for all."""


class AuditFile:
    """Used by one thread.

    A file that was moved away is re-created. Lines that cannot be written are buffered and written with the next one.
    """

    name = "file"

    def __init__(self, path: Path, rotation: Rotation = Rotation()) -> None:  # noqa: B008 - frozen
        self.path = path
        self.dropped = 0
        self._rotation = rotation
        self._waiting: deque[bytes] = deque()
        self._began_s: float | None = None
        """When the file's first line was written."""
        self._fd = self._open()
        self.chain = self._recover()

    @property
    def waiting(self) -> int:
        """The number of lines that could not be written and will be retried."""
        return len(self._waiting)

    def write(self, line: bytes, now_s: float) -> None:
        """Write `line`, given without its newline."""
        if len(self._waiting) >= _MOST_KEPT:
            self.dropped += 1
        else:
            self._waiting.append(line + b"\n")
        self.retry(now_s)

    def retry(self, now_s: float) -> None:
        """Write the waiting lines."""
        try:
            self._follow_path()
            if self._is_regular and self._is_due(now_s):
                self._rotate(now_s)
            self._flush(now_s)
        except OSError as failed:
            # Repeated failures are counted in the buffer and logged once.
            if len(self._waiting) == 1:
                _logger.error("%s: could not write the audit log: %s", self.path, failed.strerror)

    def close(self) -> None:
        with suppress(OSError):
            self._flush(0.0)
        self.dropped += len(self._waiting)
        os.close(self._fd)

    def _flush(self, now_s: float) -> None:
        data = b"".join(self._waiting)
        if not data:
            return
        written = os.write(self._fd, data)
        if written < len(data) and self._is_regular:
            # A torn line would break the chain: all lines are written again with the next one.
            os.ftruncate(self._fd, self._size)
            raise OSError(0, "the disk is full")
        self._waiting.clear()
        self._size += len(data)
        if self._began_s is None:
            self._began_s = now_s

    # Which file

    def _open(self) -> int:
        try:
            fd = os.open(self.path, _FLAGS, _MODE)
        except OSError as failed:
            raise ConfigError(f"could not open the audit log {self.path}: {failed.strerror}") from failed
        status = os.fstat(fd)
        self._is_regular = stat.S_ISREG(status.st_mode)
        self._size = status.st_size if self._is_regular else 0
        self._began_s = None
        if self._is_regular and not _locked(fd):
            os.close(fd)
            raise ConfigError(f"the audit log {self.path} is in use by another broker; set security.audit_file")
        return fd

    def _follow_path(self) -> None:
        """Reopen the file if it was moved away."""
        if not self._is_regular:
            return
        with suppress(FileNotFoundError):
            if os.path.samestat(self.path.stat(), os.fstat(self._fd)):
                return
        self._reopen()

    def _reopen(self) -> None:
        before = self._fd
        try:
            self._fd = self._open()
        except ConfigError as refused:
            raise OSError(0, str(refused)) from refused
        os.close(before)

    def _recover(self) -> Chain:
        """Remove a torn last line, and continue the chain of the previous one."""
        if not self._is_regular:
            return Chain()
        last = b""
        if self._size:
            tail = _tail(self._fd, self._size)
            whole = tail.rfind(b"\n") + 1
            if whole < len(tail):
                self._size -= len(tail) - whole
                os.ftruncate(self._fd, self._size)
                _logger.warning("%s: removed an incomplete last line", self.path)
            last = tail[:whole].rstrip(b"\n").rpartition(b"\n")[2]
            self._began_s = _time_of(_first_line(self._fd))
        if not last and (rotated := self._rotated()):
            with rotated[-1].open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                last = _tail(file.fileno(), size).rstrip(b"\n").rpartition(b"\n")[2]
        chain = Chain.after(last) if last else None
        if last and chain is None:
            _logger.warning("%s: the last line is not part of a chain; starting a new chain", self.path)
        return chain or Chain()

    # Rotation

    def _is_due(self, now_s: float) -> bool:
        if not self._size:
            return False
        rule = self._rotation
        if rule.max_bytes and self._size + sum(map(len, self._waiting)) > rule.max_bytes:
            return True
        return bool(rule.max_age_s) and self._began_s is not None and now_s - self._began_s >= rule.max_age_s

    def _rotate(self, now_s: float) -> None:
        when = datetime.fromtimestamp(now_s, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        last = link_of(_tail(self._fd, self._size).rstrip(b"\n").rpartition(b"\n")[2])
        # With the sequence number, so that two rotations at the same time do not replace each other's file.
        seq = 0 if last is None else last.seq
        self.path.rename(self.path.with_name(f"{self.path.stem}-{when}-{seq:012}{self.path.suffix}"))
        self._reopen()
        if self._rotation.kept:
            for old in self._rotated()[: -self._rotation.kept]:
                with suppress(OSError):
                    old.unlink()

    def _rotated(self) -> list[Path]:
        """The rotated files, oldest first."""
        prefix, suffix = self.path.stem + "-", self.path.suffix
        found = (path for path in self.path.parent.iterdir() if path.name.startswith(prefix) and path.suffix == suffix)
        return sorted(path for path in found if path.name[len(prefix) : len(prefix) + 8].isdigit())


def _tail(fd: int, size: int) -> bytes:
    begin = max(0, size - _TAIL_BYTES)
    return b"".join(_read(fd, begin, size))


def _read(fd: int, begin: int, end: int) -> Iterator[bytes]:
    with open(fd, "rb", buffering=0, closefd=False) as file:
        file.seek(begin)
        while begin < end and (data := file.read(end - begin)):
            begin += len(data)
            yield data


def _first_line(fd: int) -> bytes:
    return b"".join(_read(fd, 0, _TAIL_BYTES)).partition(b"\n")[0]


def _time_of(line: bytes) -> float | None:
    try:
        return datetime.fromisoformat(msgspec.json.decode(line, type=dict[str, object])["time"]).timestamp()  # type: ignore[arg-type]
    except (msgspec.DecodeError, ValueError, KeyError, TypeError):
        return None


if sys.platform == "win32":

    def _locked(fd: int) -> bool:  # noqa: ARG001
        return True

else:
    import fcntl

    def _locked(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # locks are not supported here, as on some network file systems
        return True
