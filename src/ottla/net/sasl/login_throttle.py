"""Limits the rate of password guesses. Pure: the time is an argument.

An address with a few consecutive failures has to wait before its next attempt is checked, whether the password
is right or not, over all its connections; a successful login resets that. Users are never locked out:
an attacker could abuse that.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_FREE_FAILURES: Final = 10
_FORGET_AFTER_S: Final = 300.0
_FIRST_WAIT_S: Final = 0.25
_LONGEST_WAIT_S: Final = 4.0
_MOST_WAITING_S: Final = 20.0
_MOST_ADDRESSES: Final = 10_000


class _Failures(NamedTuple):
    times: int
    last_s: float
    next_s: float
    """When the next attempt may be checked."""


class LoginThrottle:
    def __init__(self) -> None:
        self._by_host: dict[str, _Failures] = {}

    def wait_s(self, host: str, now_s: float) -> float | None:
        """How long the next attempt of this address has to wait; None if too many are waiting."""
        known = self._by_host.get(host)
        if known is None or known.times < _FREE_FAILURES or now_s - known.last_s > _FORGET_AFTER_S:
            return 0.0
        begin_s = max(now_s, known.next_s)
        if begin_s - now_s > _MOST_WAITING_S:
            return None
        pause_s = min(_FIRST_WAIT_S * (1 << min(known.times - _FREE_FAILURES, 10)), _LONGEST_WAIT_S)
        # Sequential: guessing on many connections at once is no faster.
        self._by_host[host] = known._replace(next_s=begin_s + pause_s)
        return begin_s + pause_s - now_s

    def failed(self, host: str, now_s: float) -> None:
        known = self._by_host.get(host)
        if known is None or now_s - known.last_s > _FORGET_AFTER_S:
            if len(self._by_host) >= _MOST_ADDRESSES:
                self._by_host.clear()
            known = _Failures(0, now_s, now_s)
        self._by_host[host] = known._replace(times=known.times + 1, last_s=now_s)

    def succeeded(self, host: str) -> None:
        self._by_host.pop(host, None)
