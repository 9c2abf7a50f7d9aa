"""Completes an interrupted compaction, with Apache Kafka's steps.

Compacted segments are written as `.cleaned` files and renamed to `.swap`; then the replaced segments are removed, and
`.swap` is renamed to the final name. So `.swap` files are complete, unless some are still `.cleaned`.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Final

from ottla.storage.files import ENCRYPTED_LOG, LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, offset_in_name, sync_folder
from ottla.storage.segment_files.scan import NO_LIMIT, FoundBatch, Stretch, walk

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_logger: Final = logging.getLogger(__name__)

CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
# The log file comes first: once it is in place, a second attempt only has to move the remaining indexes.
_KINDS: Final = (LOG, ENCRYPTED_LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)


def complete_swaps(folder: Path) -> None:
    """Replace the original segments by the `.swap` files."""
    swaps = _files(folder, SWAP)
    if not swaps:
        return
    not_renamed = min((offset for offset, _ in _files(folder, CLEANED)), default=NO_LIMIT)
    for offset, path in swaps:
        if offset >= not_renamed:
            path.unlink()
    swaps = [(offset, path) for offset, path in swaps if offset < not_renamed]
    logs = [(offset, path) for offset, path in swaps if path.stem.endswith((LOG, ENCRYPTED_LOG))]
    if logs:
        begin, end = min(offset for offset, _ in logs), max(_next_offset(path, offset) for offset, path in logs)
        _logger.info("%s: completed an interrupted compaction of offsets %d to %d", folder.name, begin, end)
        for offset, path in _files(folder, ""):
            if begin <= offset < end:
                path.unlink()
    for _, path in swaps:
        path.rename(path.with_suffix(""))
    sync_folder(folder)


def swap_in(folder: Path, base_offset: int, replaced: Collection[int]) -> None:
    """Replace these segments by the `.cleaned` files of one segment, while the log is in use."""
    cleaned = [path for offset, path in _files(folder, CLEANED) if offset == base_offset]
    swaps = [path.rename(path.with_suffix(SWAP)) for path in cleaned]
    sync_folder(folder)
    for offset, path in _files(folder, ""):
        if offset in replaced:
            path.unlink()
    for path in swaps:
        path.rename(path.with_suffix(""))
    sync_folder(folder)


def discard_cleaned(folder: Path, base_offset: int) -> None:
    for offset, path in _files(folder, CLEANED):
        if offset == base_offset:
            path.unlink()


def _files(folder: Path, suffix: str) -> list[tuple[int, Path]]:
    """The segment files with this suffix, and their base offsets; logs before indexes."""
    found = []
    for kind in _KINDS:
        for path in sorted(folder.glob(f"*{kind}{suffix}")):
            offset = offset_in_name(path.name.removesuffix(suffix), kind)
            if offset is not None:
                found.append((offset, path))
    return found


def _next_offset(path: Path, base_offset: int) -> int:
    """The offset after the last batch in this file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        end = os.fstat(fd).st_size
        next_offset = base_offset
        for batch in walk(Stretch(lambda at, size: os.pread(fd, size, at), 0, end, base_offset)):
            if isinstance(batch, FoundBatch):
                next_offset = batch.header.next_offset
        return next_offset
    finally:
        os.close(fd)
