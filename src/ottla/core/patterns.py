"""Regular expressions from clients, matched in linear time with a work budget per expression.

Python's `re` backtracks: `(.|.)*X` may take practically forever, and cannot be interrupted. Here an
expression is compiled to an NFA that is simulated along the text, as in RE2, which
Kafka uses. Reached state sets are cached as DFA states, so that most characters cost one look-up. Computing
a new state is counted: an expression that needs too many or too large ones is rejected. That limits
time and memory.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ottla.core.pattern_parser import (
    Alternatives,
    Characters,
    Edge,
    InvalidPattern,
    Repeated,
    Sequence,
    is_word,
    parse,
)

if TYPE_CHECKING:
    from ottla.core.pattern_parser import Node

__all__ = ["MOST_WORK", "InvalidPattern", "Pattern", "compiled"]

MOST_WORK: Final = 200_000
"""NFA states that may be visited for one expression, over all texts it is matched against: about 50 ms."""
_LARGEST_PROGRAM: Final = 2000
_LARGEST_BUILD: Final = 10_000
_COST_OF_STEP: Final = 40
_COST_OF_LETTER: Final = 100
"""Additional cost of a new DFA state, or a new character, in time and memory."""
_DEAD: Final = -1


class Pattern:
    """A compiled expression. Each NFA state either accepts one of some characters, or leads to other states without
    one.
    """

    def __init__(self, text: str) -> None:
        """Raises InvalidPattern."""
        self._accepting: dict[int, Characters] = {}
        self._ways: dict[int, tuple[int, ...]] = {}
        self._edges: dict[int, Edge] = {}
        self._size = 0
        self._built = 0
        self._goal = self._place()
        start = self._add(parse(text), self._goal)
        self._sets = tuple(dict.fromkeys(self._accepting.values()))
        self._work_left = MOST_WORK
        self._kinds: dict[str, int] = {}
        """The class of each character: characters that no NFA state distinguishes have the same one."""
        self._kind_numbers: dict[tuple[bool, bytes], int] = {}
        self._kind_words: list[bool] = []
        self._passing: list[frozenset[int]] = []
        """The NFA states that accept a character, by its class."""
        self._states: list[tuple[bytes, bool | None]] = []
        self._state_numbers: dict[tuple[bytes, bool | None], int] = {}
        self._steps: dict[tuple[int, int], int] = {}
        self._accepts: dict[int, bool] = {}
        self._start = self._state({start}, None)

    def matches(self, text: str) -> bool:
        """Whether the expression matches the whole text. Raises InvalidPattern if the budget is exhausted."""
        state = self._start
        for letter in text:
            kind = self._kinds.get(letter)
            if kind is None:
                kind = self._kinds[letter] = self._kind(letter)
            after = self._steps.get((state, kind))
            if after is None:
                after = self._steps[state, kind] = self._step(state, kind)
            if after == _DEAD:
                return False
            state = after
        accepts = self._accepts.get(state)
        if accepts is None:
            places, before = self._states[state]
            accepts = self._accepts[state] = self._goal in self._reached(places, before, None)
        return accepts

    # States

    def _kind(self, letter: str) -> int:
        self._spend(_COST_OF_LETTER + sum(len(each.ranges) for each in self._sets))
        accepted = [each.has(letter) for each in self._sets]
        key = is_word(letter), bytes(accepted)
        number = self._kind_numbers.get(key)
        if number is None:
            self._spend(len(self._accepting))
            number = self._kind_numbers[key] = len(self._passing)
            those = {each for each, is_in in zip(self._sets, accepted, strict=True) if is_in}
            self._passing.append(frozenset(place for place, each in self._accepting.items() if each in those))
            self._kind_words.append(key[0])
        return number

    def _step(self, state: int, kind: int) -> int:
        places, before = self._states[state]
        is_word_next = self._kind_words[kind]
        after = {place + 1 for place in self._reached(places, before, is_word_next) & self._passing[kind]}
        return self._state(after, is_word_next) if after else _DEAD

    def _state(self, places: set[int], before: bool | None) -> int:  # noqa: FBT001 - a fact, not an option
        key = array("H", sorted(places)).tobytes(), before
        number = self._state_numbers.get(key)
        if number is None:
            number = self._state_numbers[key] = len(self._states)
            self._states.append(key)
        return number

    def _reached(self, places: bytes, before: bool | None, after: bool | None) -> set[int]:  # noqa: FBT001
        """The epsilon closure. `before` and `after` are whether the adjacent characters are word characters, None at
        the start or end of the text.
        """
        waiting = list(array("H", places))
        reached = set(waiting)
        visited = 0
        while waiting:
            place = waiting.pop()
            visited += 1
            edge = self._edges.get(place)
            if edge is not None and not _is_at(edge, before, after):
                continue
            for way in self._ways.get(place, ()):
                if way not in reached:
                    reached.add(way)
                    waiting.append(way)
        self._spend(_COST_OF_STEP + visited)
        return reached

    def _spend(self, work: int) -> None:
        self._work_left -= work
        if self._work_left < 0:
            raise InvalidPattern("the expression is too expensive to match")

    # Compilation, from the end to the start: the next state is already known

    def _place(self) -> int:
        self._size += 2  # the state after a character is the next number
        if self._size > _LARGEST_PROGRAM:
            raise InvalidPattern("the expression is too large")
        return self._size

    def _add(self, node: Node, then: int) -> int:
        """The start state of this node, which continues with `then`."""
        # A repeated empty group creates no states, but takes time.
        self._built += 1
        if self._built > _LARGEST_BUILD:
            raise InvalidPattern("the expression is too large")
        match node:
            case Characters():
                place = self._place()
                self._accepting[place] = node
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


def _is_at(edge: Edge, before: bool | None, after: bool | None) -> bool:  # noqa: FBT001
    match edge:
        case Edge.START:
            return before is None
        case Edge.END:
            return after is None
        case Edge.WORD:
            return bool(before) is not bool(after)
        case Edge.NO_WORD:
            return bool(before) is bool(after)


@lru_cache(maxsize=64)
def compiled(text: str) -> Pattern:
    """The compiled pattern, cached. Raises InvalidPattern."""
    return Pattern(text)
