"""Where the last reads of a segment ended: a reader that continues there needs no index."""

from __future__ import annotations

from typing import Final

_MOST: Final = 64


class ReadEnds(dict[int, int]):
    """Positions in the segment, by the offset of the next record."""

    def remember(self, next_offset: int, position: int) -> None:
        if len(self) >= _MOST:
            self.pop(next(iter(self)))
        self[next_offset] = position
