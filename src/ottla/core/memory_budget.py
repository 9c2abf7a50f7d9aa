"""How much memory clients may make the broker hold for one purpose, in bytes that are estimated and not measured."""

from __future__ import annotations


class MemoryBudget:
    __slots__ = ("held_bytes", "max_bytes", "refused")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.held_bytes = 0
        self.refused = 0
        """Requests refused because of their size or because the budget was used up."""

    def has_room(self, growth: int) -> bool:
        """Whether a request may add this much. One that adds nothing is always let through."""
        return growth <= 0 or self.held_bytes + growth <= self.max_bytes
