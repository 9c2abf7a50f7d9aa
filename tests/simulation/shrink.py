"""Shrinking: remove faults as long as the history still fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .history import Outcome
    from .plans import Event, Plan


def kinds_of(outcome: Outcome | str) -> set[str]:
    """Kinds of violations: a shrunk history must fail in the same way."""
    return {"broke"} if isinstance(outcome, str) else {each.split(":")[0] for each in outcome.violations}


def shrunk(plan: Plan, goes_wrong: Callable[[Plan], bool], may_go_on: Callable[[], bool]) -> Plan:
    events = list(plan.events)

    def fails(kept: list[Event]) -> bool:
        return goes_wrong(replace(plan, events=tuple(kept)))

    # What comes behind the failure first.
    size = len(events) // 2
    while size and may_go_on():
        if len(events) > size and fails(events[:-size]):
            events = events[:-size]
        else:
            size //= 2
    size = max(len(events) // 2, 1)
    while may_go_on():
        position, has_shrunk = 0, False
        while position < len(events) and may_go_on():
            kept = events[:position] + events[position + size :]
            if kept and fails(kept):
                events, has_shrunk = kept, True
            else:
                position += size
        if size == 1 and not has_shrunk:
            break
        size = max(size // 2, 1)
    return replace(plan, events=tuple(events))
