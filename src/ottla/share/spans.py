"""Consecutive offsets with the same state, sorted and disjoint."""

from __future__ import annotations

from bisect import bisect_right
from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


class State(IntEnum):
    """Kafka's codes; negative ones are specific to Ottla, and never persisted."""

    DYING = -2
    """Rejected, but archived only after its dead letter is durable."""
    DELAYED = -1
    """Not due yet."""
    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        return self >= State.ACKNOWLEDGED


NO_MEMBER: Final = ""


class Span:
    __slots__ = ("count", "first", "last", "member", "state", "until_ms")

    def __init__(  # noqa: PLR0913
        self, first: int, last: int, state: State, count: int = 0, member: str = NO_MEMBER, until_ms: int = 0
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count
        """The delivery count."""
        self.member = member
        """The member that has acquired the records."""
        self.until_ms = until_ms
        """When the lock expires, or when the records may be due."""

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def part(self, first: int, last: int) -> Span:
        return Span(first, last, self.state, self.count, self.member, self.until_ms)

    def given_up(self) -> Span:
        return Span(self.first, self.last, State.ARCHIVED, self.count)

    def continues(self, before: Span) -> bool:
        """Whether the two spans can be merged."""
        if before.last + 1 != self.first or before.state is not self.state:
            return False
        if self.state.is_final:
            return True
        return (before.count, before.member, before.until_ms) == (self.count, self.member, self.until_ms)

    def __repr__(self) -> str:
        return f"<{self.first}..{self.last} {self.state.name} {self.count} {self.member}>"


class Spans:
    """Spans of offsets; gaps between them are offsets with unknown state."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self.records: dict[State, int] = dict.fromkeys(State, 0)
        """The number of offsets with each state."""
        self.stretches: dict[State, int] = dict.fromkeys(State, 0)
        """The number of spans with each state."""

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    def _index(self, offset: int) -> int:
        """The index of the span with this offset, or of the first one behind it."""
        at = bisect_right(self._spans, offset, key=_first)
        return at - 1 if at and self._spans[at - 1].last >= offset else at

    def between(self, first: int, last: int) -> list[Span]:
        """The spans that overlap first to last."""
        found = []
        for at in range(self._index(first), len(self._spans)):
            if self._spans[at].first > last:
                break
            found.append(self._spans[at])
        return found

    def next_of(self, state: State, offset: int) -> Span | None:
        """The first span with this state from here on."""
        for at in range(self._index(offset), len(self._spans)):
            if self._spans[at].state is state:
                return self._spans[at]
        return None

    def cut(self, first: int, last: int) -> None:
        """Forget the state of these offsets."""
        at = self._index(first)
        end = at
        pieces = []
        while end < len(self._spans) and self._spans[end].first <= last:
            span = self._spans[end]
            self._discount(span)
            if span.first < first:
                pieces.append(span.part(span.first, first - 1))
            if span.last > last:
                pieces.append(span.part(last + 1, span.last))
            end += 1
        for piece in pieces:
            self._account(piece)
        self._spans[at:end] = pieces

    def put(self, span: Span) -> None:
        """Replace the state of the span's offsets."""
        if self._spans and self._spans[-1].last >= span.first:
            self.cut(span.first, span.last)
        at = bisect_right(self._spans, span.first, key=_first)
        if at and span.continues(self._spans[at - 1]):
            at -= 1
            span = span.part(self._take(at).first, span.last)
        if at < len(self._spans) and self._spans[at].continues(span):
            span = span.part(span.first, self._take(at).last)
        self._spans.insert(at, span)
        self._account(span)

    def _take(self, at: int) -> Span:
        span = self._spans.pop(at)
        self._discount(span)
        return span

    def _account(self, span: Span) -> None:
        self.records[span.state] += span.size
        self.stretches[span.state] += 1

    def _discount(self, span: Span) -> None:
        self.records[span.state] -= span.size
        self.stretches[span.state] -= 1

    def gaps(self, first: int, last: int) -> list[tuple[int, int]]:
        """The gaps between these offsets."""
        found = []
        for span in self.between(first, last):
            if span.first > first:
                found.append((first, span.first - 1))
            first = span.last + 1
        if first <= last:
            found.append((first, last))
        return found

    def final_from(self, offset: int) -> int:
        """The first offset from here on that is not final."""
        for at in range(self._index(offset), len(self._spans)):
            span = self._spans[at]
            if span.first > offset or not span.state.is_final:
                break
            offset = span.last + 1
        return offset


def _first(span: Span) -> int:
    return span.first
