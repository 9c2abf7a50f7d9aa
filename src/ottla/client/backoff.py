"""Exponential backoff with jitter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.client.chance import CHANCE

if TYPE_CHECKING:
    from collections.abc import Callable

_JITTER: Final = 0.2
"""A delay is up to this fraction longer or shorter, so that clients do not retry in lockstep."""
_MOST_DOUBLINGS: Final = 30


class Backoff:
    __slots__ = ("_first_s", "_longest_s", "_random")

    def __init__(self, first_ms: int, longest_ms: int, random: Callable[[], float] = CHANCE.random) -> None:
        self._first_s = first_ms / 1000
        self._longest_s = longest_ms / 1000
        self._random = random

    def delay_s(self, failures: int) -> float:
        """The delay after this many consecutive failures; 0 after none."""
        if failures == 0:
            return 0.0
        doubled = min(self._longest_s, self._first_s * (1 << min(failures - 1, _MOST_DOUBLINGS)))
        return doubled * (1 - _JITTER + 2 * _JITTER * self._random())
