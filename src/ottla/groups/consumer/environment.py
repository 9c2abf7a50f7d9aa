"""The broker's services that consumer groups use."""

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
    """Generates member ids."""
    timing: Callable[[str], Timing]
    """The settings of the group with this id, including its configs."""
    matching: Matching
    """Topics matched by the regular expressions of all groups."""
