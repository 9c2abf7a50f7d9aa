"""A snapshot of a broker's data: topics, records, offsets, groups, transactions, users, ACLs and quotas.

All of it is on disk, so a snapshot is a copy of the folder. Segments are appended to in place,
so hard links would change with them.
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
    """Pass it to `restore`, any number of times, while its broker exists."""

    folder: Path

    @classmethod
    def take(cls, data: Path, folder: Path) -> Snapshot:
        """Take a snapshot, while no writes happen."""
        _copy(data, folder)
        return cls(folder)

    def put_back(self, data: Path) -> None:
        rmtree(data)
        _copy(self.folder, data)


def _copy(source: Path, to: Path) -> None:
    copytree(source, to, copy_function=_copy_file, ignore=ignore_patterns("*-delete"))


def _copy_file(source: str, to: str) -> None:
    # Remains of a deleted topic may be removed concurrently.
    with suppress(FileNotFoundError):
        copy2(source, to)
