"""The timeouts of a consumer group member."""

from __future__ import annotations

from enum import Enum


class Wait(Enum):
    SESSION = "session"
    """Session timeout."""
    REVOCATION = "revocation"
    """The time to confirm a revocation."""
    REJOIN = "rejoin"
    """The time in which a classic member must rejoin."""
    SYNC = "sync"
    """The time in which a classic member must send SyncGroup."""
