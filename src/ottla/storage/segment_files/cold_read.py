"""Verified reads of data that this process did not write.

Data appended by this process was verified on append. Data found on disk is verified when it is first read,
since it may be corrupt: a reader gets the batches before the corruption, then an error, and
everything behind it by its own offset.

(A batch's checksum does not cover its leader epoch; on a standalone broker a wrong one is harmless.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.core.errors import CorruptMessage
from ottla.storage.segment_files.scan import Damage, walk

if TYPE_CHECKING:
    from ottla.storage.segment_files.scan import Stretch


class Bounds(NamedTuple):
    from_offset: int
    until_offset: int
    max_bytes: int


class Found(NamedTuple):
    start: int
    end: int
    next_offset: int


class Unverified:
    """The unverified part of a file, which shrinks from the front as readers progress."""

    def __init__(self, size: int) -> None:
        self._until = size
        self._checked = 0

    def covers(self, start: int, end: int) -> bool:
        """Whether any byte from `start` to below `end` is unverified."""
        return start < self._until and end > self._checked

    def checked(self, start: int, end: int) -> None:
        if start <= self._checked:
            self._checked = max(self._checked, end)

    def truncate(self, size: int) -> None:
        self._until = min(self._until, size)
        self._checked = min(self._checked, size)


def find_checked(stretch: Stretch, bounds: Bounds) -> Found | None:
    """The requested batches, all verified; None if there are none from `from_offset` on.

    Raises CorruptMessage if `from_offset` is in a corrupt part.
    """
    found: Found | None = None
    damage: Damage | None = None
    for batch in walk(stretch):
        if isinstance(batch, Damage):
            if found:
                break
            damage = batch
            continue
        header = batch.header
        if header.last_offset < bounds.from_offset:
            damage = None
            continue
        if damage and header.base_offset > bounds.from_offset:
            break
        start = found.start if found else batch.position
        end = batch.position + header.size
        if header.base_offset >= bounds.until_offset or (found and end - start > bounds.max_bytes):
            break
        damage = None
        found = Found(start, end, header.next_offset)
    if found is None and damage is not None:
        raise CorruptMessage(f"corrupt batch at position {damage.position}: {damage.reason}")
    return found
