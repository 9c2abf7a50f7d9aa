"""How long this node may act as a leader without contact to ZooKeeper. Pure rules over a monotonic clock.

ZooKeeper expires a session when it has received nothing for the session timeout, so never earlier than that time after
*sending* the last request that ZooKeeper answered. The lease ends well before, by this node's clock: this node has
stopped before another leader is elected.
"""

from __future__ import annotations

from typing import Final

_SHARE: Final = 0.75
"""The fraction of the timeout. The rest covers clock drift, and operations that started just before the end."""
_QUESTIONS: Final = 6
"""The number of requests per timeout: some may be lost without ending the lease."""


class Lease:
    __slots__ = ("_until_s",)

    def __init__(self) -> None:
        self._until_s = float("-inf")

    def is_over(self, now_s: float) -> bool:
        return now_s >= self._until_s

    def left_s(self, now_s: float) -> float:
        return max(self._until_s - now_s, 0.0)

    def answered(self, sent_s: float, timeout_s: float) -> None:
        """Extend the lease: ZooKeeper answered a request sent at that time, in a session with this timeout."""
        self._until_s = max(self._until_s, sent_s + timeout_s * _SHARE)

    def end(self) -> None:
        """End the lease with its session: a new session starts with a new lease."""
        self._until_s = float("-inf")


def ask_every_s(timeout_s: float) -> float:
    return timeout_s / _QUESTIONS
