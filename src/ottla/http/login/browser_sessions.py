"""Browser sessions, identified by a random cookie. They end when the password changes, or when the OpenID provider ends
them.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.http.framework.endpoints import Identity

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ottla.broker.security.oidc.flow import Ended
    from ottla.broker.security.oidc.provider import Granted

COOKIE: Final = "ottla_session"
LIFETIME_S: Final = 12 * 3600
_MOST_SESSIONS: Final = 10_000


@dataclass(slots=True)
class Session:
    identity: Identity
    ends_s: float
    fingerprint: bytes | None = None
    """Changes with the user's password; None for a login through the provider."""
    granted: Granted | None = None
    """The provider's last tokens."""
    renew_from_s: float = 0.0
    """When to refresh these tokens."""
    renewal: asyncio.Task[None] | None = None


class Sessions:
    def __init__(self, fingerprint: Callable[[str], bytes | None], now_s: Callable[[], float]) -> None:
        self._fingerprint = fingerprint
        self._now_s = now_s
        self._by_token: dict[str, Session] = {}

    def begin(self, user: str) -> str | None:
        """A token for a user who has just authenticated; None if the user no longer exists."""
        fingerprint = self._fingerprint(user)
        if fingerprint is None:
            return None
        return self._add(Session(Identity(f"User:{user}"), self._now_s() + LIFETIME_S, fingerprint))

    def begin_granted(self, granted: Granted) -> str:
        """A token for a user authenticated by the provider."""
        session = Session(Identity(), self._now_s() + LIFETIME_S)
        self.renewed(session, granted)
        return self._add(session)

    def _add(self, session: Session) -> str:
        if len(self._by_token) >= _MOST_SESSIONS:
            self._forget_some()
        token = secrets.token_urlsafe(32)
        self._by_token[token] = session
        return token

    def get(self, token: str) -> Session | None:
        """The session of this token, unless it has ended."""
        session = self._by_token.get(token)
        if session is None:
            return None
        if self._now_s() >= session.ends_s or not self._has_same_password(session):
            self.end(token)
            return None
        return session

    def _has_same_password(self, session: Session) -> bool:
        if session.fingerprint is None:
            return True
        return self._fingerprint(session.identity.principal.removeprefix("User:")) == session.fingerprint

    def is_renewal_due(self, session: Session) -> bool:
        return session.granted is not None and self._now_s() >= session.renew_from_s

    def renewed(self, session: Session, granted: Granted) -> None:
        session.identity = Identity(f"User:{granted.user}", granted.groups)
        session.granted = granted
        session.renew_from_s = self._now_s() + granted.lasts_s

    def end(self, token: str) -> Session | None:
        return self._by_token.pop(token, None)

    def end_matching(self, ended: Ended) -> int:
        """End the sessions ended by the provider; returns their number."""
        doomed = [token for token, session in self._by_token.items() if _is_meant(session.granted, ended)]
        for token in doomed:
            self.end(token)
        return len(doomed)

    def _forget_some(self) -> None:
        """Drop the ended sessions; if there are none, the oldest."""
        now_s = self._now_s()
        ended = [token for token, session in self._by_token.items() if session.ends_s <= now_s]
        for token in ended or list(self._by_token)[:1]:
            self.end(token)


def _is_meant(granted: Granted | None, ended: Ended) -> bool:
    if granted is None or ended.subject not in (None, granted.subject):
        return False
    return ended.session_id in (None, granted.session_id)
