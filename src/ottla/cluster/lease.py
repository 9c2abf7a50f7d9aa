"""Until when this node may act as a leader without asking anybody. Pure rules over a monotonic clock.

ZooKeeper ends a session when it has heard nothing from it for the session's timeout, so not before that time has
passed since a question was *sent* that ZooKeeper answered. The lease ends a good deal sooner, by this node's own
clock: whoever is elected then can be sure that this node has stopped.
"""

from __future__ import annotations

from typing import Final

_SHARE: Final = 0.75
"""Of the timeout. The rest covers clocks that run at different speeds, and what was begun just before the end."""
_QUESTIONS: Final = 6
"""For each timeout: some may get lost, and the lease still does not end."""


class Lease:
    __slots__ = ("_until_s",)

    def __init__(self) -> None:
        self._until_s = float("-inf")

    def is_over(self, now_s: float) -> bool:
        return now_s >= self._until_s

    def left_s(self, now_s: float) -> float:
        return max(self._until_s - now_s, 0.0)

    def answered(self, sent_s: float, timeout_s: float) -> None:
        """ZooKeeper answered what was asked at that time, in a session of this timeout."""
        self._until_s = max(self._until_s, sent_s + timeout_s * _SHARE)

    def end(self) -> None:
        """The session is known to be over: a new one begins with a lease of its own."""
        self._until_s = float("-inf")


def ask_every_s(timeout_s: float) -> float:
    return timeout_s / _QUESTIONS
