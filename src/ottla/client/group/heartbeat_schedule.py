"""When to send a heartbeat, and when max_poll_interval_ms is exceeded. Pure."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.config import ConsumerConfig


class Due(Enum):
    NOTHING = auto()
    HEARTBEAT = auto()
    POLL_OVERDUE = auto()
    """The application has not polled for max_poll_interval_ms."""


class HeartbeatSchedule:
    def __init__(self, config: ConsumerConfig, now: float) -> None:
        self._heartbeat_s = config.heartbeat_interval_ms / 1000
        self._poll_s = config.max_poll_interval_ms / 1000
        self._next_beat = now + self._heartbeat_s
        self._away_since: float | None = now
        self.is_busy = False
        """Whether the application may be processing messages."""

    def beat(self, now: float) -> None:
        """Record a sent heartbeat, or a join that counts as one."""
        self._next_beat = now + self._heartbeat_s

    def poll_begins(self) -> None:
        self._away_since = None
        self.is_busy = False

    def poll_ends(self, now: float, *, is_busy: bool) -> None:
        self._away_since = now
        self.is_busy = is_busy

    def due(self, now: float) -> Due:
        if self._away_since is not None and now >= self._away_since + self._poll_s:
            return Due.POLL_OVERDUE
        return Due.HEARTBEAT if now >= self._next_beat else Due.NOTHING

    def next_at(self) -> float:
        """When to check again, unless something happens before."""
        return self._next_beat if self._away_since is None else min(self._next_beat, self._away_since + self._poll_s)
