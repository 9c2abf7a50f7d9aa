"""Assignors: compute the target assignment from each member's topics and current target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.groups.consumer.range_assignor import assign_ranges
from ottla.groups.consumer.uniform_assignor import assign_uniformly

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.groups.partitions import Assigned

    Assignor = Callable[[Mapping[str, "Subscriber"], Mapping[bytes, int]], dict[str, Assigned]]
    """From members by id, and the partition counts of their topics."""


class Subscriber(NamedTuple):
    topic_ids: frozenset[bytes]
    assigned: Assigned
    """Its current target assignment."""
    instance_id: str | None = None


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}
