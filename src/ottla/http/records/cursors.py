"""Where somebody is in a topic, as text that they can hand back: `0:120,1:98`, partition and next offset."""

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
    """ValueError if it is none."""
    if not _CURSOR.fullmatch(text):
        raise ValueError("a cursor is made of partitions and offsets, such as 0:120,1:98")
    pairs = (pair.split(":") for pair in text.split(","))
    positions = {int(partition): int(offset) for partition, offset in pairs}
    if max(positions.values()) > _HIGHEST_OFFSET:
        raise ValueError("no offset is that high")
    return positions
