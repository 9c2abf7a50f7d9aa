"""What a member of a consumer group has to do in time."""

from __future__ import annotations

from enum import Enum


class Wait(Enum):
    SESSION = "session"
    """Be heard of."""
    REVOCATION = "revocation"
    """Say that it gave up what it was told to."""
    REJOIN = "rejoin"
    """A classic member: join again."""
    SYNC = "sync"
    """A classic member: ask for its assignment."""
