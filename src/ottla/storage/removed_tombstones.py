"""Up to which offset tombstones and transaction markers are missing from a log: compaction has removed them, here or on
the replica that the log was copied from.

A follower that has copied earlier records from another replica must not continue below this offset: it would keep a
record whose tombstone it never gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.storage.files import replace_file

if TYPE_CHECKING:
    from pathlib import Path

FILE: Final = "tombstones-removed-until"
"""In the folder of a partition. Specific to Ottla; ignored by Kafka."""


class RemovedTombstones:
    __slots__ = ("_end", "_folder", "_until")

    def __init__(self, folder: Path, end: int) -> None:
        self._folder = folder
        self._end = end
        self._until: int | None = None
        """None until it is needed: most logs are never asked."""

    @property
    def until(self) -> int:
        if self._until is None:
            self._until = self._read()
        return self._until

    def raise_to(self, until: int) -> None:
        """Record this durably, before any of them is missing. Raises OSError."""
        if until > self.until:
            replace_file(self._folder / FILE, b"%d\n" % until)
            self._until = until

    def _read(self) -> int:
        try:
            return int((self._folder / FILE).read_text())
        except FileNotFoundError:
            return 0
        except (OSError, ValueError):
            return self._end  # unknown, so all that the log had when it was opened
