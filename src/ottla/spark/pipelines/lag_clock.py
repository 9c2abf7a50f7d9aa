"""How long records have been waiting to be read, derived from observed end offsets. Pure rules."""

from __future__ import annotations

from collections import deque


class LagClock:
    """The lag of one query. Ends and positions are sums over partitions."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[float, int]] = deque()
        """When an end was first seen, for ends beyond the position."""

    def look(self, position: int, end: int, now_s: float) -> None:
        while self._waiting and self._waiting[0][1] <= position:
            self._waiting.popleft()
        last = self._waiting[-1][1] if self._waiting else position
        if end > last:
            self._waiting.append((now_s, end))

    def waiting_s(self, now_s: float) -> float:
        """The time since the oldest unread record was first seen; 0 if all known records were read."""
        return now_s - self._waiting[0][0] if self._waiting else 0.0
