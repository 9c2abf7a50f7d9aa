"""Finds the shard with the next message: the lowest sequence id among the peeked heads.

An empty shard may get a message a moment later. So it counts as empty only if it was checked after the
lowest head was known: anything pushed to it since has a higher sequence id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

_HALF: Final = 1 << 31
_WHOLE: Final = 1 << 32


class Heads:
    """The known heads of some shards."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def forget(self, shard: int) -> None:
        """Forget the head, which was popped."""
        self._known.pop(shard, None)

    def lowest(self, shards: Collection[int], peek: Callable[[Iterable[int]], Mapping[int, int]]) -> int | None:
        """The shard to pop from; None if all are empty. `peek` returns the heads of shards."""
        had = set(self._known)
        self._look([shard for shard in shards if shard not in self._known], peek)
        if set(self._known) - had and len(self._known) < len(shards):
            # A head was found while other shards were empty; they may have received earlier messages before that.
            self._look([shard for shard in shards if shard not in self._known], peek)
        found: int | None = None
        for shard in sorted(self._known):
            if found is None or is_before(self._known[shard], self._known[found]):
                found = shard
        return found

    def sequence_of(self, shard: int) -> int:
        return self._known[shard]

    def _look(self, shards: Collection[int], peek: Callable[[Iterable[int]], Mapping[int, int]]) -> None:
        if shards:
            self._known.update(peek(shards))


def is_before(one: int, other: int) -> bool:
    """Compare sequence ids, which have 32 bits and wrap around (as in RFC 1982)."""
    return 0 < (other - one) % _WHOLE < _HALF
