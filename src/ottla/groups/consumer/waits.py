"""The timeouts of a consumer group member."""

from __future__ import annotations

from enum import Enum


class Wait(Enum):
    SESSION = "session"
    """Session timeout."""
    REVOCATION = "revocation"
    """Confirm a revocation."""
    REJOIN = "rejoin"
    """A classic member: rejoin."""
    SYNC = "sync"
    """A classic member: send SyncGroup."""
