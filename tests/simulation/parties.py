"""Parties of a history: nodes and clients. Their code runs in their context."""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .loop import SimHandle

PARTY: contextvars.ContextVar[Party | None] = contextvars.ContextVar("party", default=None)


class Party:
    """One process. Paused, its callbacks are kept for later; dead, they are never run again."""

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.is_dead = False
        self.is_paused = False
        self.is_silent = False
        """Dead with its machine: peers are not notified."""
        self.held: list[SimHandle] = []
        self.wall_offset_ms = 0
        """How far its wall clock is off."""
        self.drift = 0.0
        """By how much its wall clock runs fast, as a part of the time since this process began."""
        self.began_s = 0.0
        self.boot_id = "boot"
        """Of its machine."""
        self.context = contextvars.copy_context()
        self.context.run(PARTY.set, self)

    def __repr__(self) -> str:
        return self.name


def party_of(context: contextvars.Context) -> Party | None:
    return context.get(PARTY)


def current_party() -> Party | None:
    return PARTY.get()
