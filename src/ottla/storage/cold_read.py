"""Reading what this process did not write itself, and so cannot vouch for.

What was appended by this process was checked when it came. What was found on disk is checked when it is first read,
since the disk may have damaged it meanwhile: a reader gets the batches before the damage, then an error, and
everything behind it by its own offset.

(A batch's checksum does not cover its leader epoch; on one node a wrong one harms nobody.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.core.errors import CorruptMessage
from ottla.storage.scan import Damage, walk

if TYPE_CHECKING:
    from ottla.storage.scan import Stretch


class Bounds(NamedTuple):
    from_offset: int
    until_offset: int
    max_bytes: int


class Found(NamedTuple):
    start: int
    end: int
    next_offset: int


class Unverified:
    """How much of a file nobody has checked yet. It is checked from the front on, as readers go through it."""

    def __init__(self, size: int) -> None:
        self._until = size
        self._checked = 0

    def covers(self, start: int, end: int) -> bool:
        """Whether any byte from `start` to below `end` is unchecked."""
        return start < self._until and end > self._checked

    def checked(self, start: int, end: int) -> None:
        if start <= self._checked:
            self._checked = max(self._checked, end)

    def truncate(self, size: int) -> None:
        self._until = min(self._until, size)
        self._checked = min(self._checked, size)


def find_checked(stretch: Stretch, bounds: Bounds) -> Found | None:
    """Where the wanted batches lie, every one of them checked; None if there are none from `from_offset` on.

    CorruptMessage if `from_offset` lies in a damaged part.
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
        raise CorruptMessage(f"the batch at {damage.position} is damaged: {damage.reason}")
    return found
