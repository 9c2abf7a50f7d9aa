"""Record states, and the effect of acknowledgements."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from ottla.share.spans import Span, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Acknowledgement(IntEnum):
    """Acknowledgement types, with the protocol's codes."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Acquired(NamedTuple):
    first: int
    last: int
    deliveries: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class Change(NamedTuple):
    first: int
    last: int
    state: State
    deliveries: int
    was_rejected: bool = False

    @property
    def is_lasting(self) -> bool:
        """Whether this state is persisted."""
        return self.state in (State.AVAILABLE, State.ACKNOWLEDGED, State.ARCHIVED)


class Limits(NamedTuple):
    lock_ms: int = 30_000
    deliveries: int = 5
    in_flight: int = 2000
    has_dead_letters: bool = False


class Delay(NamedTuple):
    offset: int
    due_ms: int


def fate(span: Span, kind: Acknowledgement, limits: Limits) -> Change:
    if kind is Acknowledgement.ACCEPT:
        return Change(span.first, span.last, State.ACKNOWLEDGED, span.count)
    if kind is Acknowledgement.GAP:
        return Change(span.first, span.last, State.ARCHIVED, span.count)
    if kind is Acknowledgement.RELEASE and span.count < limits.deliveries:
        return Change(span.first, span.last, State.AVAILABLE, span.count)
    end = State.DYING if limits.has_dead_letters else State.ARCHIVED
    return Change(span.first, span.last, end, span.count, kind is Acknowledgement.REJECT)


def runs(first: int, last: int, kinds: Sequence[int]) -> Iterator[tuple[int, int, Acknowledgement]]:
    """Consecutive offsets with the same acknowledgement."""
    if len(kinds) == 1:
        yield first, last, Acknowledgement(kinds[0])
        return
    begin = 0
    for at in range(1, len(kinds) + 1):
        if at == len(kinds) or kinds[at] != kinds[begin]:
            yield first + begin, first + at - 1, Acknowledgement(kinds[begin])
            begin = at
