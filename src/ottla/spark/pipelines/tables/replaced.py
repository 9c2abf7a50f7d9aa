"""Files that merges have replaced: kept for readers of the last versions, then removed. Pure rules."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

READERS_S: Final = 300.0
"""Minimum time for queries of an old version, however fast versions follow each other."""


class _Version(NamedTuple):
    number: int
    at_s: float
    files: tuple[str, ...]


class ReplacedFiles:
    """In memory only: files forgotten by a killed process are removed as orphans."""

    def __init__(self) -> None:
        self._versions: deque[_Version] = deque()
        self._count = 0

    def note(self, files: Iterable[str], now_s: float) -> None:
        """Record a commit that removed these files."""
        self._count += 1
        replaced = tuple(files)
        if replaced:
            self._versions.append(_Version(self._count, now_s, replaced))

    def due(self, keep_versions: int, now_s: float) -> list[str]:
        """Files that none of the latest versions has; each is returned once."""
        found: list[str] = []
        while self._versions and self._is_due(self._versions[0], keep_versions, now_s):
            found += self._versions.popleft().files
        return found

    def _is_due(self, version: _Version, keep_versions: int, now_s: float) -> bool:
        return self._count - version.number >= keep_versions and now_s - version.at_s >= READERS_S
