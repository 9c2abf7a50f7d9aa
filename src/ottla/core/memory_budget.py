"""Limits how much memory clients may make the broker use for one purpose, in estimated bytes."""

from __future__ import annotations


class MemoryBudget:
    __slots__ = ("held_bytes", "max_bytes", "refused")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.held_bytes = 0
        self.refused = 0
        """Requests rejected because of their size or an exhausted budget."""

    def has_room(self, growth: int) -> bool:
        """Whether a request may add this much. A request that adds nothing is always allowed."""
        return growth <= 0 or self.held_bytes + growth <= self.max_bytes
