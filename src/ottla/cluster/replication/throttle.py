"""Throttling of replicas that catch up. Pure rules: the time is an argument.

Transferred bytes are a debt that is paid off at the rate. A transfer may start only without debt: over any period the
total is at most the rate, plus one fetch.
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
        """The delay until more may be transferred; 0.0 for now."""
        left = self._left(rate, now_s)
        if left <= 0:
            return 0.0
        return left / rate if rate > 0 else float("inf")

    def _left(self, rate: float, now_s: float) -> float:
        return max(0.0, self._owed - (now_s - self._since_s) * rate)


def most_at_once(most: int, rate: float) -> int:
    """The maximum size of one fetch: small, since the rate may be exceeded by one fetch."""
    return max(1, min(most, int(rate * _STEP_S)))


def is_listed(throttled: Sequence[str], partition: int, node: int) -> bool:
    """Whether leader or follower.replication.throttled.replicas contains this replica: each entry is `partition:node`,
    or `*`.
    """
    return ALL in throttled or f"{partition}:{node}" in throttled
