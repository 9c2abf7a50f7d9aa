"""Time as an argument: rules take a clock, tests pass one they control."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock milliseconds since 1970, for visible timestamps. May jump."""

    def monotonic_s(self) -> float:
        """Monotonic seconds, for timeouts."""


class SystemClock:
    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock that moves only when told to."""

    __slots__ = ("_elapsed_s", "_now_ms")

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._elapsed_s = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_s(self) -> float:
        return self._elapsed_s

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("monotonic time cannot go back; use set_wall_clock to move only the wall clock")
        self._elapsed_s += seconds
        self._now_ms += round(seconds * 1000)

    def set_wall_clock(self, now_ms: int) -> None:
        """Set the wall clock, as an administrator or NTP would; timeouts are not affected."""
        self._now_ms = now_ms


class SteadyClock:
    """Wall-clock time that never jumps: read once, then advanced by the monotonic clock.

    For irreversible decisions, such as deleting data older than a week.
    """

    __slots__ = ("_clock", "_started_ms", "_started_s")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started_ms = clock.now_ms()
        self._started_s = clock.monotonic_s()

    def now_ms(self) -> int:
        return self._started_ms + round((self._clock.monotonic_s() - self._started_s) * 1000)
