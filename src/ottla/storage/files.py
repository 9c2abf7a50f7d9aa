"""File names, and file operations of this package."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from ottla.core.errors import DataDirError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOG: Final = ".log"
ENCRYPTED_LOG: Final = ".elog"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
DELETED: Final = ".deleted"
CORRUPT: Final = ".corrupt"

PASSING_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE})
"""Errors after which there may be space again; any other write error means that the disk cannot be trusted."""

_OFFSET_DIGITS: Final = 20


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:0{_OFFSET_DIGITS}d}{suffix}"


def offset_in_name(name: str, suffix: str) -> int | None:
    """The offset in the name of a file of this kind; None for other files."""
    stem = name.removesuffix(suffix)
    is_ours = name.endswith(suffix) and len(stem) == _OFFSET_DIGITS and stem.isascii() and stem.isdigit()
    return int(stem) if is_ours else None


@contextmanager
def storage_errors(doing: str) -> Iterator[None]:
    """Convert an OSError into the error for clients."""
    try:
        yield
    except OSError as refused:
        raise StorageError(f"{doing}: {refused.strerror or refused}") from refused


@contextmanager
def folder_errors(path: Path) -> Iterator[None]:
    """Convert an OSError into the error of a data folder that cannot be used."""
    try:
        yield
    except OSError as refused:
        raise DataDirError(f"{path} cannot be used: {refused.strerror}") from None


def write_all(fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
    """Write all bytes at `position`. After an error, some may have been written."""
    written = os.pwrite(fd, data, position)
    while written < len(data):
        written += os.pwrite(fd, memoryview(data)[written:], position + written)


def replace_file(path: Path, data: bytes, *, is_durable: bool = True) -> None:
    """Replace the file atomically: after a crash it is the old or the new one.

    With `is_durable`, also after a power failure. Without it, the replacement is fast, for data that can be rebuilt.
    """
    fd = write_beside(path, data)
    try:
        try:
            if is_durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        beside(path).replace(path)
    except OSError:
        discard_beside(path)
        raise
    if is_durable:
        sync_folder(path.parent)


def beside(path: Path) -> Path:
    """The temporary name of a replacement file."""
    return path.with_name(path.name + ".tmp")


def write_beside(path: Path, data: bytes) -> int:
    """Write the replacement file; returns its descriptor for the fsync. The caller closes it."""
    fd = os.open(beside(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, data, 0)
    except OSError:
        os.close(fd)
        discard_beside(path)
        raise
    return fd


def discard_beside(path: Path) -> None:
    # On a full disk, a partial file must not take up space.
    with suppress(OSError):
        beside(path).unlink()


def open_folder(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def sync_folder(folder: Path) -> None:
    """Sync the creations, renames and deletions in this folder."""
    fd = open_folder(folder)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove_deleted(doomed: Path) -> None:
    """Remove the files left by `delete_partitions` or `delete_expired`. May take long; can run in any thread."""
    import shutil  # takes 2 ms, too long for every start

    if doomed.is_dir():
        shutil.rmtree(doomed, ignore_errors=True)
    else:
        doomed.unlink(missing_ok=True)
