"""Who is logged in in a browser: a cookie that nobody can guess, for as long as the password stays the same."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

COOKIE: Final = "ottla_session"
LIFETIME_S: Final = 12 * 3600
_MOST_SESSIONS: Final = 10_000


class Session(NamedTuple):
    user: str
    fingerprint: bytes
    """What changes with the password."""
    ends_s: float


class Sessions:
    def __init__(self, fingerprint: Callable[[str], bytes | None], now_s: Callable[[], float]) -> None:
        self._fingerprint = fingerprint
        self._now_s = now_s
        self._by_token: dict[str, Session] = {}

    def begin(self, user: str) -> str | None:
        """A token for a user who has just shown the password; None if there is no such user any more."""
        fingerprint = self._fingerprint(user)
        if fingerprint is None:
            return None
        if len(self._by_token) >= _MOST_SESSIONS:
            self._forget_some()
        token = secrets.token_urlsafe(32)
        self._by_token[token] = Session(user, fingerprint, self._now_s() + LIFETIME_S)
        return token

    def principal(self, token: str) -> str | None:
        """Whose session it is; None if it is nobody's, or not any more."""
        session = self._by_token.get(token)
        if session is None:
            return None
        if self._now_s() >= session.ends_s or self._fingerprint(session.user) != session.fingerprint:
            self.end(token)
            return None
        return f"User:{session.user}"

    def end(self, token: str) -> None:
        self._by_token.pop(token, None)

    def _forget_some(self) -> None:
        """Those that have ended; if there are none, the oldest."""
        now_s = self._now_s()
        ended = [token for token, session in self._by_token.items() if session.ends_s <= now_s]
        for token in ended or list(self._by_token)[:1]:
            self.end(token)
