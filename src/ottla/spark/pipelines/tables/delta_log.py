"""Which files of a Delta log are no longer needed. Rules only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_VERSIONED: Final = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\b.*\.parquet)")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")


def files_to_remove(names: Iterable[str], version: int, keep_versions: int) -> list[str]:
    """Commits and checkpoints that none of the last versions is read from.

    A version is read from the last checkpoint before it, and from the commits since then.
    """
    known = list(names)
    checkpoints = [int(match[1]) for name in known if (match := _CHECKPOINT.fullmatch(name))]
    base = max((each for each in checkpoints if each <= version - keep_versions), default=0)
    return [name for name in known if (match := _VERSIONED.fullmatch(name)) and int(match[1]) < base]
