"""Delayed messages of a shard that were skipped, as stored with the cursor.

Consecutive offsets are one range. The text is `SEQUENCE FIRST+MORE,GAP+MORE,…`: each range as its distance from
the end of the previous one, and how many more follow its first. Offset metadata is limited in size, so there
is a maximum; beyond it, messages behind the next delayed one have to wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LONGEST_TEXT: Final = 4000
_MOST_MESSAGES: Final = 100_000
"""The maximum number of skipped messages: the due time of each is kept in memory."""


class LeftBehind:
    """Immutable: adding or removing returns a new value."""

    __slots__ = ("_stretches",)

    def __init__(self, stretches: Iterable[tuple[int, int]] = ()) -> None:
        self._stretches = tuple(stretches)

    def __iter__(self) -> Iterator[int]:
        return (offset for first, last in self._stretches for offset in range(first, last + 1))

    def __bool__(self) -> bool:
        return bool(self._stretches)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LeftBehind) and self._stretches == other._stretches

    def __hash__(self) -> int:
        return hash(self._stretches)

    def with_next(self, offset: int) -> LeftBehind | None:
        """Add a message behind all others; returns None if there is no space for it."""
        if sum(last - first + 1 for first, last in self._stretches) >= _MOST_MESSAGES:
            return None
        *before, last = self._stretches or [(offset, offset - 1)]
        if last[1] + 1 == offset:
            return LeftBehind((*before, (last[0], offset)))
        grown = LeftBehind((*self._stretches, (offset, offset)))
        return grown if len(grown.text(0)) <= _LONGEST_TEXT else None

    def without(self, offset: int) -> LeftBehind:
        pieces = []
        for first, last in self._stretches:
            if not first <= offset <= last:
                pieces.append((first, last))
                continue
            pieces += [(a, b) for a, b in ((first, offset - 1), (offset + 1, last)) if a <= b]
        return LeftBehind(pieces)

    def since(self, start: int) -> LeftBehind:
        """Drop messages below the log start offset."""
        return LeftBehind((max(first, start), last) for first, last in self._stretches if last >= start)

    def until(self, end: int) -> LeftBehind:
        return LeftBehind((first, min(last, end - 1)) for first, last in self._stretches if first < end)

    def text(self, sequence: int) -> str:
        parts = []
        end = 0
        for first, last in self._stretches:
            parts.append(f"{first - end}+{last - first}")
            end = last
        return f"{sequence} {','.join(parts)}" if parts else str(sequence)


def parse(text: str) -> tuple[int, LeftBehind]:
    """Parse the sequence and the messages. If a group tool has set the offset, both are missing."""
    sequence, _, rest = text.partition(" ")
    if not (sequence.isascii() and sequence.isdigit()):
        return 0, LeftBehind()
    stretches = []
    end = 0
    for part in rest.split(",") if rest else ():
        gap, _, more = part.partition("+")
        if not (part.isascii() and gap.isdigit() and more.isdigit()):
            return int(sequence), LeftBehind()
        first = end + int(gap)
        end = first + int(more)
        stretches.append((first, end))
    return int(sequence), LeftBehind(stretches)
