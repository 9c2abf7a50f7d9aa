"""Logins through the OpenID Connect provider, from the event loop: pending logins, renewals, logouts."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Final

from ottla.broker.security.oidc.flow import authorization_url, logout_url, new_attempt
from ottla.broker.security.oidc.provider import Provider
from ottla.core.security import LoginFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.security.logins import Logins
    from ottla.broker.security.oidc.flow import Attempt, Ended
    from ottla.broker.security.oidc.provider import Granted

HOW: Final = "oidc"
"""The name of this login method in the audit log and metrics."""
_MOST_ATTEMPTS: Final = 10_000


class OidcLogins:
    def __init__(self, logins: Logins, now_s: Callable[[], float] = time.monotonic) -> None:
        self._logins = logins
        self._config = logins.config
        self._now_s = now_s
        self._provider = Provider(logins.config, now_s)
        self._attempts: dict[str, Attempt] = {}

    async def begin(self) -> tuple[str, str]:
        """The URL to redirect a browser to, and the state for its callback."""
        metadata = await self._logins.in_thread(self._provider.metadata)
        attempt = new_attempt(self._now_s())
        self._forget_late_attempts()
        self._attempts[attempt.state] = attempt
        return authorization_url(metadata, self._config, attempt), attempt.state

    async def finish(self, code: str, state: str, expected: str, peer: str) -> Granted:
        """The logged-in user; raises LoginFailed if this browser did not start the login, or the provider rejects
        it."""
        granted = await self._logins.counted(HOW, peer, self._redeem(code, state, expected))
        self._logins.noted(HOW, f"User:{granted.user}", peer)
        return granted

    async def _redeem(self, code: str, state: str, expected: str) -> Granted:
        attempt = self._attempts.pop(state, None)
        if attempt is None or attempt.ends_s <= self._now_s() or not secrets.compare_digest(state, expected):
            raise LoginFailed("unknown or expired login in the callback")
        return await self._logins.in_thread(lambda: self._provider.redeem(code, attempt))

    async def renew(self, before: Granted) -> Granted:
        return await self._logins.in_thread(lambda: self._provider.renew(before))

    async def ended(self, logout_token: str, peer: str) -> Ended:
        """The sessions to end; raises LoginFailed if the token is not from the provider."""
        return await self._logins.counted(
            f"{HOW} logout", peer, self._logins.in_thread(lambda: self._provider.ended(logout_token))
        )

    async def logout_url(self, granted: Granted) -> str | None:
        metadata = await self._logins.in_thread(self._provider.metadata)
        return logout_url(metadata, self._config, granted.id_token)

    def _forget_late_attempts(self) -> None:
        now_s = self._now_s()
        while self._attempts:
            oldest = next(iter(self._attempts.values()))
            if oldest.ends_s > now_s and len(self._attempts) < _MOST_ATTEMPTS:
                return
            del self._attempts[oldest.state]
