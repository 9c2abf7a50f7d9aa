"""How fast replicas that catch up may be copied. Pure rules: the time is an argument.

What was taken is owed, and paid off at the rate. Only who owes nothing may take more: over any stretch of time it is no
more than the rate, and one fetch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

ALL: Final = "*"
_STEP_S: Final = 0.25


class Throttle:
    __slots__ = ("_owed", "_since_s")

    def __init__(self) -> None:
        self._owed = 0.0
        self._since_s = 0.0

    def took(self, amount: int, rate: float, now_s: float) -> None:
        self._owed = self._left(rate, now_s) + amount
        self._since_s = now_s

    def wait_s(self, rate: float, now_s: float) -> float:
        """How long until more may be taken; 0.0 for now."""
        left = self._left(rate, now_s)
        if left <= 0:
            return 0.0
        return left / rate if rate > 0 else float("inf")

    def _left(self, rate: float, now_s: float) -> float:
        return max(0.0, self._owed - (now_s - self._since_s) * rate)


def most_at_once(most: int, rate: float) -> int:
    """Little at a time: what is taken at once is what the rate may be passed by."""
    return max(1, min(most, int(rate * _STEP_S)))


def is_listed(throttled: Sequence[str], partition: int, node: int) -> bool:
    """Whether leader or follower.replication.throttled.replicas names this one: `partition:node` each, or all."""
    return ALL in throttled or f"{partition}:{node}" in throttled
