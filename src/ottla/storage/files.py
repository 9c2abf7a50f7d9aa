"""Names of files, and the few ways in which this package writes to the disk."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from ottla.core.errors import StorageError

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

_OFFSET_DIGITS: Final = 20


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:0{_OFFSET_DIGITS}d}{suffix}"


def offset_in_name(name: str, suffix: str) -> int | None:
    """The offset that a file of this kind is named after; None for any other file."""
    stem = name.removesuffix(suffix)
    is_ours = name.endswith(suffix) and len(stem) == _OFFSET_DIGITS and stem.isascii() and stem.isdigit()
    return int(stem) if is_ours else None


@contextmanager
def storage_errors(doing: str) -> Iterator[None]:
    """Turn what the operating system refuses into the error that a client can be told."""
    try:
        yield
    except OSError as refused:
        raise StorageError(f"{doing}: {refused.strerror or refused}") from refused


def write_all(fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
    """Write every byte at `position`. When this raises, some of them may have been written."""
    written = os.pwrite(fd, data, position)
    while written < len(data):
        written += os.pwrite(fd, memoryview(data)[written:], position + written)


def replace_file(path: Path, data: bytes, *, is_durable: bool = True) -> None:
    """Put `data` in place of the file, so that a killed process leaves either the old file or the new one.

    If it `is_durable`, a power cut does too. Without that it takes no time, and is for what can be rebuilt.
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
    """Where that is written first which takes the file's place as a whole."""
    return path.with_name(path.name + ".tmp")


def write_beside(path: Path, data: bytes) -> int:
    """Write what will take the file's place; its descriptor, for syncing it. The caller closes it."""
    fd = os.open(beside(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, data, 0)
    except OSError:
        os.close(fd)
        discard_beside(path)
        raise
    return fd


def discard_beside(path: Path) -> None:
    # On a full disk, half a file must not take up what room there is.
    with suppress(OSError):
        beside(path).unlink()


def open_folder(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def sync_folder(folder: Path) -> None:
    """Make the creations, renames and deletions in this folder durable."""
    fd = open_folder(folder)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove_deleted(doomed: Path) -> None:
    """Remove what `delete_partitions` or `delete_expired` left. It may take long; it can run anywhere."""
    import shutil  # only now: it takes 2 ms, which no start should wait for

    if doomed.is_dir():
        shutil.rmtree(doomed, ignore_errors=True)
    else:
        doomed.unlink(missing_ok=True)
