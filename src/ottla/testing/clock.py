"""A controllable clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ottla.core.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.broker import Broker


class MovableClock:
    """The broker's time. Sessions, rebalances, retention, timestamps and offset expiry use it.

    Fetch wait times and idle connection timeouts use real time.
    """

    def __init__(self, moved: Callable[[], None]) -> None:
        """`moved` is called after each move, to process what has become due."""
        self._moved = moved
        self._real = SystemClock()
        self._ahead_s = 0.0
        self._stood_still_s = 0.0
        self._frozen_at_s: float | None = None

    def now_ms(self) -> int:
        return self._real.now_ms() + round((self._ahead_s - self._lost_s()) * 1000)

    def monotonic_s(self) -> float:
        return time.monotonic() + self._ahead_s - self._lost_s()

    def _lost_s(self) -> float:
        standing_s = 0.0 if self._frozen_at_s is None else time.monotonic() - self._frozen_at_s
        return self._stood_still_s + standing_s

    def advance(self, seconds: float) -> None:
        """Move it forward, and return when the broker has processed what became due."""
        if seconds < 0:
            raise ValueError("the clock can only move forward")
        self._ahead_s += seconds
        self._moved()

    def freeze(self) -> None:
        """Stop it; `advance` still moves it."""
        if self._frozen_at_s is None:
            self._frozen_at_s = time.monotonic()

    def resume(self) -> None:
        """Restart it."""
        self._stood_still_s = self._lost_s()
        self._frozen_at_s = None


def catch_up(broker: Broker) -> None:
    """Process what is due after the broker's clock was moved."""
    broker.groups.catch_up()
    broker.groups.expire_offsets()
    if broker.has_had_transactions:
        broker.transactions.catch_up()
    if broker.has_shared:
        broker.share.catch_up()
    broker.maintenance.apply_retention()
