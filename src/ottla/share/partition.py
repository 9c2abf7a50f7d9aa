"""The state of one partition in a share group: the state and owner of each offset (KIP-932).

start ── offsets in flight or available, mixed with finished ones ── end ── not inspected yet

Usage. All times are milliseconds of one clock; timeouts are handled by `expire`.

- `wanted` returns where to read. Each batch found there is passed to `look_at`; then `acquire` takes what is
available of it.
- `acknowledge`, `release` and `expire` only compute changes. Write the changes, then `apply` them, before
any other call.
- A record that needs a dead letter is DYING. It is archived with `buried`, once its dead letter is durable.
- Delayed records do not block others: they are counted separately, and inspected again when they may be due.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from ottla.core.errors import InvalidRecordState, InvalidRequest
from ottla.share.fates import Acknowledgement, Acquired, Change, Delay, Limits, fate, runs
from ottla.share.spans import Span, Spans, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST_DELAYED: Final = 10_000
"""The maximum number of ranges of delayed records; records behind more of them have to wait."""
_MERGED_RECORDS: Final = 1000
"""If there are many ranges, adjacent ones are merged up to this size."""


class SharePartition:
    def __init__(self, start: int) -> None:
        self.start = start
        """The share-partition start offset: all records below are finished."""
        self.end = start
        """The offset from which nothing was inspected yet."""
        self._spans = Spans()
        self._unknown: list[tuple[int, int]] = []
        """Offsets between start and end to inspect: again, or for the first time since loading."""
        self._wake_ups: list[tuple[int, int, int]] = []
        self._first_available = start

    @classmethod
    def restored(cls, start: int, changes: Iterable[Change]) -> SharePartition:
        found = cls(start)
        found.replay(start, changes)
        found.settle()
        return found

    def replay(self, start: int, changes: Iterable[Change]) -> None:
        """Apply a persisted state; call `settle` at the end."""
        for change in changes:
            if change.last >= self.start:
                self._spans.put(Span(max(change.first, self.start), change.last, change.state, change.deliveries))
                self.end = max(self.end, change.last + 1)
        self.move_start(start)
        self._advance()

    def settle(self) -> None:
        self._unknown = self._spans.gaps(self.start, self.end - 1)

    # ── Queries ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def completed(self) -> int:
        """How many offsets from the start on are finished."""
        return self._count(State.ACKNOWLEDGED) + self._count(State.ARCHIVED)

    @property
    def in_flight(self) -> int:
        return self._count(State.AVAILABLE) + self._count(State.ACQUIRED) + self._count(State.DYING)

    @property
    def delayed(self) -> int:
        return self._count(State.DELAYED)

    def _count(self, state: State) -> int:
        return self._spans.records[state]

    def lasting(self) -> list[Change]:
        """The state to persist. Acquired records are available again after a reload."""
        kept = []
        for span in self._spans:
            if span.state is State.ACQUIRED or span.state is State.DYING:
                if span.count > 1:
                    kept.append(Change(span.first, span.last, State.AVAILABLE, span.count - 1))
            elif span.state is not State.DELAYED and (span.state.is_final or span.count):
                kept.append(Change(span.first, span.last, span.state, span.count))
        return kept

    def held_by(self, member: str) -> list[Acquired]:
        return [
            Acquired(span.first, span.last, span.count)
            for span in self._spans
            if span.state is State.ACQUIRED and span.member == member
        ]

    def dying(self) -> list[Acquired]:
        return [Acquired(span.first, span.last, span.count) for span in self._spans if span.state is State.DYING]

    # ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────

    def wanted(self, most_in_flight: int) -> int | None:
        """The offset from which to read; None if nothing is available before the next event."""
        found = None
        if self._count(State.AVAILABLE):
            span = self._spans.next_of(State.AVAILABLE, self._first_available)
            if span is not None:
                found = self._first_available = max(span.first, self.start)
        if self.in_flight < most_in_flight and self._unknown:
            first = self._unknown[0][0]
            found = first if found is None else min(found, first)
        if found is None and self.has_room(most_in_flight):
            found = self.end
        return found

    def has_room(self, most_in_flight: int) -> bool:
        """Whether there may be more records than were inspected so far."""
        return self.in_flight < most_in_flight and self._spans.stretches[State.DELAYED] < MOST_DELAYED

    def is_unknown(self, first: int, last: int) -> bool:
        return last >= self.end or any(a <= last and b >= first for a, b in self._unknown)

    def look_at(
        self, read_from: int, first: int, last: int, delays: Sequence[Delay] = (), *, is_data: bool = True
    ) -> None:
        """Process a batch with offsets first to last that was read from `read_from` on; some records may not be due
        yet.
        """
        if first > read_from:
            self.miss(read_from, first - 1)
        self._learn(first, last, State.AVAILABLE if is_data else State.ARCHIVED, delays if is_data else ())
        self._advance()

    def miss(self, first: int, last: int) -> None:
        """Record that the log has no records there, or no longer: compaction may have removed them."""
        self._learn(first, last, State.ARCHIVED)
        for span in self._spans.between(first, last):
            if span.state is State.AVAILABLE:
                self._spans.put(span.part(max(span.first, first), min(span.last, last)).given_up())
        self._advance()

    def _learn(self, first: int, last: int, state: State, delays: Sequence[Delay] = ()) -> None:
        for a, b in self._taken_from_unknown(first, last):
            at = a
            for stretch in _stretches(delays, a, b):
                if stretch.first > at:
                    self._spans.put(Span(at, stretch.first - 1, state))
                self._delay(stretch)
                at = stretch.last + 1
            if at <= b:
                self._spans.put(Span(at, b, state))
            if state is State.AVAILABLE:
                self._first_available = min(self._first_available, a)

    def _taken_from_unknown(self, first: int, last: int) -> list[tuple[int, int]]:
        taken = []
        if self._unknown:
            left = []
            for a, b in self._unknown:
                if b < first or a > last:
                    left.append((a, b))
                    continue
                taken.append((max(a, first), min(b, last)))
                if a < first:
                    left.append((a, first - 1))
                if b > last:
                    left.append((last + 1, b))
            self._unknown = left
        if last >= self.end:
            taken.append((max(first, self.end), last))
            self.end = last + 1
        return taken

    def _delay(self, stretch: Span) -> None:
        before = self._spans.between(stretch.first - 1, stretch.first - 1) if self._is_crowded else []
        if before and before[0].state is State.DELAYED and before[0].size + stretch.size <= _MERGED_RECORDS:
            stretch = Span(
                before[0].first, stretch.last, State.DELAYED, until_ms=min(before[0].until_ms, stretch.until_ms)
            )
        self._spans.put(stretch)
        heappush(self._wake_ups, (stretch.until_ms, stretch.first, stretch.last))

    @property
    def _is_crowded(self) -> bool:
        return self._spans.stretches[State.DELAYED] >= MOST_DELAYED // 2

    def acquire(  # noqa: PLR0913
        self, first: int, last: int, member: str, most: int, limits: Limits, now_ms: int
    ) -> list[Acquired]:
        """Acquire available records of these offsets, up to `most` and the in-flight limit."""
        got = []
        until_ms = now_ms + limits.lock_ms
        for span in self._spans.between(max(first, self.start), last):
            if most <= 0:
                break
            if span.state is not State.AVAILABLE:
                continue
            begin = max(span.first, first)
            end = min(span.last, last, begin + most - 1)
            most -= end - begin + 1
            self._spans.put(Span(begin, end, State.ACQUIRED, span.count + 1, member, until_ms))
            heappush(self._wake_ups, (until_ms, begin, end))
            got.append(Acquired(begin, end, span.count + 1))
        return got

    # ── Acknowledgements ─────────────────────────────────────────────────────────────────────────────────────

    def acknowledge(
        self, member: str, first: int, last: int, kinds: Sequence[int], limits: Limits
    ) -> tuple[list[Change], list[Acquired]]:
        """The changes, and the renewals. Raises InvalidRecordState if a record is not acquired by this member."""
        if first > last or len(kinds) not in (1, last - first + 1) or not all(0 <= one <= 4 for one in kinds):
            raise InvalidRequest(f"{len(kinds)} acknowledgements for the offsets {first} to {last}")
        changes: list[Change] = []
        renewed: list[Acquired] = []
        for a, b, kind in runs(first, last, kinds):
            # Records below the start were dropped meanwhile: by an administrator, or with the log start offset.
            for span in self._held(member, max(a, self.start), b):
                if kind is Acknowledgement.RENEW:
                    renewed.append(Acquired(span.first, span.last, span.count))
                else:
                    changes.append(fate(span, kind, limits))
        return changes, renewed

    def _held(self, member: str, first: int, last: int) -> Iterator[Span]:
        at = first
        for span in self._spans.between(first, last):
            if span.first > at or span.state is not State.ACQUIRED or span.member != member:
                break
            yield span.part(at, min(span.last, last))
            at = span.last + 1
        if at <= last:
            raise InvalidRecordState(f"offset {at} is not acquired by this member")

    def renew(self, renewed: Iterable[Acquired], limits: Limits, now_ms: int) -> None:
        until_ms = now_ms + limits.lock_ms
        for first, last, count in renewed:
            [span] = self._spans.between(first, first)
            self._spans.put(Span(first, last, State.ACQUIRED, count, span.member, until_ms))
            heappush(self._wake_ups, (until_ms, first, last))

    def release(self, member: str, limits: Limits, *, was_delivered: bool) -> list[Change]:
        """Release this member's records: undelivered, or as failed deliveries."""
        return [
            fate(span, Acknowledgement.RELEASE, limits)
            if was_delivered
            else Change(span.first, span.last, State.AVAILABLE, span.count - 1)
            for span in self._spans
            if span.state is State.ACQUIRED and span.member == member
        ]

    def next_deadline_ms(self) -> int | None:
        """When to call `expire`. May be too early, never too late."""
        return self._wake_ups[0][0] if self._wake_ups else None

    def expire(self, limits: Limits, now_ms: int) -> tuple[list[Change], bool]:
        """The changes of expired locks, and whether something must be inspected again."""
        late: dict[int, Change] = {}
        is_due = False
        while self._wake_ups and self._wake_ups[0][0] <= now_ms:
            _, first, last = heappop(self._wake_ups)
            for span in self._spans.between(first, last):
                if span.until_ms > now_ms:
                    continue
                if span.state is State.ACQUIRED:
                    late[span.first] = fate(span, Acknowledgement.RELEASE, limits)
                elif span.state is State.DELAYED:
                    self._forget_delay(span)
                    is_due = True
        return list(late.values()), is_due

    def _forget_delay(self, span: Span) -> None:
        self._spans.cut(span.first, span.last)
        self._unknown.append((span.first, span.last))
        self._unknown.sort()

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.last < self.start:
                continue
            self._spans.put(Span(max(change.first, self.start), change.last, change.state, change.deliveries))
            if change.state is State.AVAILABLE:
                self._first_available = min(self._first_available, change.first)
        self._advance()

    def start_after(self, changes: Sequence[Change]) -> int:
        """The start offset after these changes."""
        final = {change.first: change.last + 1 for change in changes if change.state.is_final}
        offset = self._spans.final_from(self.start)
        while offset in final:
            offset = self._spans.final_from(final[offset])
        return offset

    def buried(self, letters: Iterable[Acquired]) -> list[Change]:
        """Archive these records, whose dead letters are durable."""
        return [Change(first, last, State.ARCHIVED, count) for first, last, count in letters]

    # ── Start offset ─────────────────────────────────────────────────────────────────────────────────────────

    def move_start(self, offset: int) -> None:
        """Move the start offset: records below it are gone, regardless of their owner."""
        if offset <= self.start:
            return
        self._spans.cut(self.start, offset - 1)
        self._unknown = [(max(a, offset), b) for a, b in self._unknown if b >= offset]
        self.start = offset
        self.end = max(self.end, offset)
        self._advance()

    def cut_end(self, offset: int) -> None:
        """Lower the inspected end to that of the log: a power failure lost the rest."""
        if offset < self.end:
            self._spans.cut(offset, self.end - 1)
            self._unknown = [(a, min(b, offset - 1)) for a, b in self._unknown if a < offset]
            self.end = offset
            self.start = min(self.start, offset)

    def _advance(self) -> None:
        start = self._spans.final_from(self.start)
        if start > self.start:
            self._spans.cut(self.start, start - 1)
            self.start = start
            self.end = max(self.end, start)


def _stretches(delays: Sequence[Delay], first: int, last: int) -> Iterator[Span]:
    """Ranges of delayed records, each with the time when its first record is due."""
    stretch: Span | None = None
    for offset, due_ms in delays:
        if not first <= offset <= last:
            continue
        if stretch is not None and stretch.last + 1 == offset:
            stretch = Span(stretch.first, offset, State.DELAYED, until_ms=min(stretch.until_ms, due_ms))
            continue
        if stretch is not None:
            yield stretch
        stretch = Span(offset, offset, State.DELAYED, until_ms=due_ms)
    if stretch is not None:
        yield stretch


__all__ = ["Acknowledgement", "Acquired", "Change", "Delay", "Limits", "SharePartition", "State"]
