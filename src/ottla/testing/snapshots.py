"""A broker's data as it was at one moment: topics, records, offsets, groups, transactions, users, ACLs and quotas.

What is on the disk is all there is of these, so a snapshot is a copy of the folder. Segments are appended to in place,
so that a hard link to one would grow with it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from shutil import copy2, copytree, ignore_patterns, rmtree
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Snapshot:
    """To be given to `restore`, as often as wanted, while the broker that made it is there."""

    folder: Path

    @classmethod
    def take(cls, data: Path, folder: Path) -> Snapshot:
        """While nobody writes."""
        _copy(data, folder)
        return cls(folder)

    def put_back(self, data: Path) -> None:
        rmtree(data)
        _copy(self.folder, data)


def _copy(source: Path, to: Path) -> None:
    copytree(source, to, copy_function=_copy_file, ignore=ignore_patterns("*-delete"))


def _copy_file(source: str, to: str) -> None:
    # What is left of a deleted topic may be removed just now.
    with suppress(FileNotFoundError):
        copy2(source, to)
