"""A position in a topic as text: `0:120,1:98`, partition and next offset."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_CURSOR: Final = re.compile(r"[0-9]{1,10}:[0-9]{1,19}(,[0-9]{1,10}:[0-9]{1,19})*")
_HIGHEST_OFFSET: Final = (1 << 63) - 1


def write_cursor(positions: Mapping[int, int]) -> str:
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(positions.items()))


def read_cursor(text: str) -> dict[int, int]:
    """Raises ValueError if it is malformed."""
    if not _CURSOR.fullmatch(text):
        raise ValueError("a cursor must have the form 0:120,1:98 (partition:offset)")
    pairs = (pair.split(":") for pair in text.split(","))
    positions = {int(partition): int(offset) for partition, offset in pairs}
    if max(positions.values()) > _HIGHEST_OFFSET:
        raise ValueError("the offset is too large")
    return positions
