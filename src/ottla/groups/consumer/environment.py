"""What consumer groups know of the broker they are in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.groups.config import GroupConfig
    from ottla.groups.consumer.matching import Matching
    from ottla.groups.topic_view import TopicView


class Timing(NamedTuple):
    session_timeout_ms: int
    heartbeat_interval_ms: int


class Environment(Struct, frozen=True):
    config: GroupConfig
    topics: TopicView
    new_uuid: Callable[[], str]
    """Makes what is random about a member's id."""
    timing: Callable[[str], Timing]
    """Of the group with this id, which may have configs of its own."""
    matching: Matching
    """Which topics the patterns of all groups match."""
