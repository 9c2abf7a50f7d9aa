"""File operations for all operating systems."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from ottla.queue.errors import FailOpen, FailRead, FailWrite, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.queue.errors import QueueError

# Where supported: binary mode, and not inherited by child processes.
_FLAGS: Final = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0)


@contextmanager
def failing_as(kind: type[QueueError], doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as refused:
        raise kind(f"{doing}: {refused.strerror or refused}") from refused


def open_to_read(path: Path) -> int:
    """Raises NotFound if it does not exist."""
    try:
        return os.open(path, os.O_RDONLY | _FLAGS)
    except FileNotFoundError:
        raise NotFound(f"{path} does not exist") from None
    except OSError as refused:
        raise FailOpen(f"{path} cannot be opened: {refused.strerror}") from refused


def open_to_write(path: Path) -> int:
    with failing_as(FailOpen, f"{path} cannot be opened"):
        return os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o644)


if sys.platform == "win32":

    def read_at(fd: int, size: int, offset: int) -> bytes:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, size)

    def write_some(fd: int, data: bytes | memoryview, offset: int) -> int:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.write(fd, data)

    def sync(fd: int) -> None:
        os.fsync(fd)

else:
    read_at = os.pread
    write_some = os.pwrite
    if sys.platform == "darwin":
        import fcntl

        def sync(fd: int) -> None:
            # There, fsync leaves data in the disk's cache.
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)

    else:
        sync = os.fdatasync


def write_at(fd: int, data: bytes, offset: int) -> None:
    """Write all bytes. After an error, some may have been written."""
    written = write_some(fd, data, offset)
    while written < len(data):
        written += write_some(fd, memoryview(data)[written:], offset + written)


def read_all_at(fd: int, size: int, offset: int) -> bytes:
    """As much as there is."""
    with failing_as(FailRead, f"byte {offset} cannot be read"):
        data = read_at(fd, size, offset)
        while len(data) < size and (more := read_at(fd, size - len(data), offset + len(data))):
            data += more
    return data


def read_small(path: Path, limit: int) -> bytes | None:
    """The start of a file; None if it does not exist."""
    try:
        fd = open_to_read(path)
    except NotFound:
        return None
    try:
        return read_all_at(fd, limit, 0)
    finally:
        os.close(fd)


def overwrite_line(path: Path, line: bytes, *, is_durable: bool) -> None:
    """Replace a line such that a crash leaves the old or the new one.

    In place, since processes that have the file open must see the new line. The file is first extended, which
    does not change its first line, and then written with one write within its size.
    """
    fd = open_to_write(path)
    try:
        with failing_as(FailWrite, f"{path} cannot be written"):
            missing = len(line) - os.fstat(fd).st_size
            if missing > 0:
                write_at(fd, b"\n" * missing, len(line) - missing)
                if is_durable:
                    sync(fd)
            write_at(fd, line, 0)
            if is_durable:
                sync(fd)
    finally:
        os.close(fd)


def replace(path: Path, data: bytes, *, is_durable: bool) -> None:
    """Replace this file by another: a crash leaves either."""
    beside = path.with_name(path.name + ".tmp")
    fd = open_to_write(beside)
    try:
        with failing_as(FailWrite, f"{path} cannot be written"):
            try:
                os.ftruncate(fd, 0)
                write_at(fd, data, 0)
                if is_durable:
                    sync(fd)
            finally:
                os.close(fd)
            beside.replace(path)
    except FailWrite:
        with suppress(OSError):
            beside.unlink()
        raise


def sync_folder(folder: Path) -> None:
    """Sync the folder's entries, if the system supports it."""
    if sys.platform == "win32":
        return
    with failing_as(FailWrite, f"{folder} cannot be synced"):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
