"""Removes corrupt batches from a partition's segments, so that intact ones can be read.

For files not in use by a broker. A damaged segment is kept beside the repaired one, and the lost offsets are reported.
Offsets are unchanged, with a gap for the corrupt batches. The next start rebuilds the indexes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.storage.files import CORRUPT, OFFSET_INDEX, TIME_INDEX, sync_folder
from ottla.storage.folder.checkpoints import MISSING, read_missing
from ottla.storage.inspect import base_offset, segment_files
from ottla.storage.segment_files.scan import NO_LIMIT, Damage, FoundBatch, Stretch, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ottla.storage.segment_files.scan import Decrypt

_TMP: Final = ".tmp"
_COPIED_BYTES: Final = 1 << 20


class Lost(NamedTuple):
    """Lost offsets: from `first` to below `end`, None if unknown."""

    path: Path
    position: int
    size: int
    first: int
    end: int | None
    reason: str


def damage_in(folder: Path, decrypt_of: Callable[[Path], Decrypt | None]) -> list[Lost]:
    """The ranges that `repair` would remove; read-only."""
    files = segment_files(folder)
    found = []
    for number, file in enumerate(files):
        end_offset = base_offset(files[number + 1]) if number + 1 < len(files) else None
        found += _lost_from(file, list(_pieces(file, end_offset, decrypt_of(file))), end_offset)
    missing = read_missing(folder)
    if missing is not None:
        found.append(
            Lost(
                folder / MISSING,
                0,
                0,
                *missing,
                "they were synced once, and the end of the log was damaged or truncated",
            )
        )
    return found


def repair(folder: Path, lost: list[Lost]) -> list[Path]:
    """Remove the ranges that `damage_in` found; returns the backups of the damaged segments."""
    damaged = dict.fromkeys(each.path for each in lost if each.path.name != MISSING)
    kept = [_without(file, [each for each in lost if each.path == file]) for file in damaged]
    (folder / MISSING).unlink(missing_ok=True)
    sync_folder(folder)
    return kept


def _pieces(file: Path, end_offset: int | None, decrypt: Decrypt | None) -> Iterator[FoundBatch | Damage]:
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        limit = NO_LIMIT if end_offset is None else end_offset
        yield from walk(
            Stretch(lambda at, count: os.pread(fd, count, at), 0, size, base_offset(file) or 0, limit, decrypt)
        )
    finally:
        os.close(fd)


def _lost_from(file: Path, pieces: list[FoundBatch | Damage], end_offset: int | None) -> list[Lost]:
    lost = []
    for piece, following in zip(pieces, [*pieces[1:], None], strict=False):
        if isinstance(piece, Damage):
            size = (file.stat().st_size if following is None else following.position) - piece.position
            if isinstance(following, FoundBatch):
                end: int | None = following.header.base_offset
            else:
                end = end_offset if following is None else following.offset
            lost.append(Lost(file, piece.position, size, piece.offset, end, piece.reason))
    return lost


def _without(file: Path, lost: list[Lost]) -> Path:
    """Replace the segment by its intact batches. A crash leaves either the damaged or the repaired one."""
    kept_as = _free_name(file, lost[0].position)
    repaired = file.with_name(file.name + _TMP)
    starts = [0, *(each.position + each.size for each in lost)]
    ends = [*(each.position for each in lost), file.stat().st_size]
    with file.open("rb") as damaged, repaired.open("wb") as intact:
        for start, end in zip(starts, ends, strict=True):
            damaged.seek(start)
            for at in range(start, end, _COPIED_BYTES):
                intact.write(damaged.read(min(_COPIED_BYTES, end - at)))
        intact.flush()
        os.fsync(intact.fileno())
    repaired.chmod(file.stat().st_mode & 0o777)
    os.link(file, kept_as)
    sync_folder(file.parent)
    for suffix in (OFFSET_INDEX, TIME_INDEX):
        file.with_suffix(suffix).unlink(missing_ok=True)
    repaired.replace(file)
    return kept_as


def _free_name(file: Path, position: int) -> Path:
    """A file name like those of recovery, with a number if it exists."""
    names = (f"{file.name}.{position}{number}{CORRUPT}" for number in ("", *(f".{each}" for each in range(1, 1000))))
    return next(path for path in map(file.with_name, names) if not path.exists())
