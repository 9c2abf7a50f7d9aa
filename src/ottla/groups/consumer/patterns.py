"""Matching topic names against a pattern, in time that grows with the length of the name and never faster.

Python's own `re` goes back and tries again, and some patterns make it do so for longer than the universe will last;
anybody who may read a group could send one. Here all ways through the pattern are walked at once, as RE2 does, which
Kafka uses: a pattern is turned into a small program, and a set of places in it is moved along the name.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ottla.groups.consumer.pattern_parser import (
    WORD,
    Alternatives,
    Characters,
    Edge,
    InvalidPattern,
    Repeated,
    Sequence,
    parse,
)

if TYPE_CHECKING:
    from ottla.groups.consumer.pattern_parser import Node

__all__ = ["InvalidPattern", "Pattern", "compiled"]

_LARGEST_PROGRAM: Final = 2000
_MOST_REMEMBERED: Final = 10_000

Places = frozenset[int]


class Pattern:
    """A program of places: each lets one of some characters pass, or leads on to other places at once."""

    def __init__(self, text: str) -> None:
        self._letters: dict[int, frozenset[str]] = {}
        self._ways: dict[int, tuple[int, ...]] = {}
        self._edges: dict[int, Edge] = {}
        self._size = 0
        self._goal = self._place()
        self._start = self._add(parse(text), self._goal)
        self._known: dict[tuple[Places, str | None, str], Places] = {}

    def matches(self, name: str) -> bool:
        """Whether the whole name is one that the pattern describes."""
        places: Places = frozenset((self._start,))
        before = None
        for letter in name:
            key = places, before, letter
            after = self._known.get(key)
            if after is None:
                if len(self._known) >= _MOST_REMEMBERED:
                    self._known.clear()
                after = self._known[key] = self._step(places, before, letter)
            if not after:
                return False
            places, before = after, letter
        return self._goal in self._reached(places, before, None)

    def _step(self, places: Places, before: str | None, letter: str) -> Places:
        return frozenset(
            place + 1
            for place in self._reached(places, before, letter)
            if letter in self._letters.get(place, frozenset())
        )

    def _reached(self, places: Places, before: str | None, after: str | None) -> set[int]:
        """All places that can be got to between these two letters without a letter."""
        reached = set(places)
        waiting = list(places)
        while waiting:
            place = waiting.pop()
            edge = self._edges.get(place)
            if edge is not None and not _is_at(edge, before, after):
                continue
            new = [way for way in self._ways.get(place, ()) if way not in reached]
            reached.update(new)
            waiting += new
        return reached

    # ── Building, from the end to the start: what comes next is known already ────────────────────────────────

    def _place(self) -> int:
        self._size += 2  # the place after a letter is the next number
        if self._size > _LARGEST_PROGRAM:
            raise InvalidPattern("the expression is too large")
        return self._size

    def _add(self, node: Node, then: int) -> int:
        """Where to go in for this node and then on."""
        match node:
            case Characters():
                place = self._place()
                self._letters[place] = node.letters
                self._ways[place + 1] = (then,)
                return place
            case Edge():
                place = self._place()
                self._edges[place] = node
                self._ways[place] = (then,)
                return place
            case Sequence():
                for each in reversed(node.nodes):
                    then = self._add(each, then)
                return then
            case Alternatives():
                place = self._place()
                self._ways[place] = tuple(self._add(each, then) for each in node.nodes)
                return place
            case Repeated():
                return self._add_repeated(node, then)

    def _add_repeated(self, node: Repeated, then: int) -> int:
        if node.most is None:
            loop = self._place()
            self._ways[loop] = (self._add(node.node, loop), then)
            entry = loop
        else:
            entry = then
            for _ in range(node.most - node.least):
                place = self._place()
                self._ways[place] = (self._add(node.node, entry), then)
                entry = place
        for _ in range(node.least):
            entry = self._add(node.node, entry)
        return entry


def _is_at(edge: Edge, before: str | None, after: str | None) -> bool:
    match edge:
        case Edge.START:
            return before is None
        case Edge.END:
            return after is None
        case Edge.WORD:
            return (before in WORD) is not (after in WORD)
        case Edge.NO_WORD:
            return (before in WORD) is (after in WORD)


@lru_cache(maxsize=256)
def compiled(text: str) -> Pattern:
    """Raises InvalidPattern."""
    return Pattern(text)
