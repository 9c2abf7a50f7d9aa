"""The assignors by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.client.group.assignors.cooperative_sticky import CooperativeStickyAssignor
from ottla.client.group.assignors.range import RangeAssignor
from ottla.client.group.assignors.round_robin import RoundRobinAssignor
from ottla.client.group.assignors.sticky import StickyAssignor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.client.group.assignors.subjects import Assignor

ASSIGNORS: Final[Mapping[str, Assignor]] = {
    assignor.name: assignor
    for assignor in (RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor())
}


def assignors_named(names: Iterable[str | Assignor]) -> tuple[Assignor, ...]:
    """The assignors of these names, in order; a custom assignor is passed through."""
    found = []
    for name in names:
        if not isinstance(name, str):
            found.append(name)
        elif name in ASSIGNORS:
            found.append(ASSIGNORS[name])
        else:
            raise ValueError(f"unknown assignor {name!r}; known are {', '.join(sorted(ASSIGNORS))}")
    if not found:
        raise ValueError("assignors: a member of a group needs at least one")
    return tuple(found)
