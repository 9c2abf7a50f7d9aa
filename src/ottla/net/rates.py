"""Rate limits by address or user. Pure: the time is an argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_BURST_S: Final = 1.0
_MOST_ADDRESSES: Final = 100_000


class Bucket:
    """A token bucket with debt; a burst of one second is allowed."""

    __slots__ = ("_owed", "_since_s")

    def __init__(self) -> None:
        self._owed = 0.0
        self._since_s = 0.0

    def add(self, amount: float, rate: float, now_s: float) -> float:
        """Record an amount; returns how many seconds to pause to stay within `rate` per second."""
        self._owed = max(0.0, self._owed - (now_s - self._since_s) * rate) + amount
        self._since_s = now_s
        return max(0.0, self._owed / rate - _BURST_S) if rate > 0 else 0.0

    def admits(self, rate: float, now_s: float) -> bool:
        """Count one event if it is within the limit; rejected ones do not count."""
        left = max(0.0, self._owed - (now_s - self._since_s) * rate)
        if left + 1 > max(1.0, rate * _BURST_S):
            return False
        self._owed = left + 1
        self._since_s = now_s
        return True


class Rates:
    """The rate of new connections by address."""

    def __init__(self, per_address: float) -> None:
        self.per_address = per_address
        self.limit_of: Callable[[str], float | None] | None = None
        """The configured rate of an address, or the default."""
        self._buckets: dict[str, Bucket] = {}

    @property
    def is_on(self) -> bool:
        return self.per_address > 0 or self.limit_of is not None

    def admits(self, host: str, now_s: float) -> bool:
        own = None if self.limit_of is None else self.limit_of(host)
        rate = self.per_address if own is None else own
        if rate <= 0 and own is None:
            return True
        if len(self._buckets) >= _MOST_ADDRESSES:
            self._buckets.clear()
        return self._buckets.setdefault(host, Bucket()).admits(rate, now_s)
