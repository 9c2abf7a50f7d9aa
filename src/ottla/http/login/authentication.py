"""HTTP authentication: a password, a token, a browser session, or a client certificate.

Required if Kafka clients must authenticate; except for the console's static files, health
checks and the API description.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response

from ottla.core.security import LoginFailed, PasswordExpired
from ottla.http.framework.connection import CERTIFICATE
from ottla.http.framework.endpoints import IDENTITY, LOGIN_HOLDS, Identity
from ottla.http.framework.problems import Problem, problem_response
from ottla.http.iceberg_mount import is_iceberg
from ottla.http.login.browser_sessions import COOKIE, Session, Sessions
from ottla.http.registry_config import REGISTRY_MEDIA_TYPE, REGISTRY_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from ottla.broker.security.logins import Logins
    from ottla.broker.security.security import Security

_logger: Final = logging.getLogger(__name__)

_OPEN: Final = frozenset({"/", "/health", "/ready", "/v1/openapi.json", "/v1/session"})
_OPEN_FOR_OIDC: Final = "/v1/session/oidc"
_OPEN_BELOW: Final = "/console/"
_NO_LOGIN: Final = 40101
_HINT: Final = "Send a user and password (HTTP Basic) or a bearer token."


class LoginRefused(Problem):
    def __init__(self, detail: str) -> None:
        super().__init__(401, detail, hint=_HINT)


class Login:
    """Wraps the router: authenticates callers, and rejects unknown users."""

    def __init__(self, app: ASGIApp, security: Security, logins: Logins, *, also_open: str = "") -> None:
        """Paths below `also_open` have their own authentication."""
        self._app = app
        self._logins = logins
        self._user_in = security.user_in
        self.oidc = security.oidc
        self._also_open = also_open
        self.sessions = Sessions(logins.passwords.fingerprint, time.monotonic)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        try:
            scope[IDENTITY], scope[LOGIN_HOLDS] = await self._login(headers, scope)
        except LoginRefused as refused:
            if not self._is_open(scope["path"]):
                await _refusal(refused, headers, scope["path"])(scope, receive, send)
                return
            scope[IDENTITY] = Identity()
        await self._app(scope, receive, send)

    async def _login(self, headers: Headers, scope: Scope) -> tuple[Identity, Callable[[], bool]]:
        """The caller, and a check that the login is still valid."""
        given = headers.get("authorization")
        if given is not None:
            return await self._by_header(given, _peer(scope))
        token = session_in(headers)
        session = None if token is None else self.sessions.get(token)
        if token is None or session is None:
            return self._by_certificate(scope), lambda: True
        if self.sessions.is_renewal_due(session):
            await self._renew(token, session)
        return session.identity, lambda: self.sessions.get(token) is not None

    def _by_certificate(self, scope: Scope) -> Identity:
        certificate = scope.get(CERTIFICATE)
        if not certificate:
            raise LoginRefused("log in first")
        user = self._user_in(certificate)
        if user is None:
            raise LoginRefused("no rule of principal_rules matches the certificate")
        return Identity(f"User:{user}")

    async def _renew(self, token: str, session: Session) -> None:
        """Refresh the session once for all waiting requests; it ends if the provider rejects that or does not
        answer.
        """
        if session.renewal is None:
            session.renewal = asyncio.create_task(self._ask_provider(session))
        try:
            await asyncio.shield(session.renewal)
        except LoginFailed as refused:
            if self.sessions.end(token) is not None:
                _logger.info("session of %s ended: %s", session.identity.principal, refused)
            raise LoginRefused("the session has ended; log in again") from None

    async def _ask_provider(self, session: Session) -> None:
        try:
            if self.oidc is None or session.granted is None:
                raise LoginFailed("no OpenID provider")
            self.sessions.renewed(session, await self.oidc.renew(session.granted))
        finally:
            session.renewal = None

    async def by_password(self, user: str, password: str, peer: str) -> Identity:
        try:
            return Identity(await self._logins.by_password(user, password, peer))
        except PasswordExpired as expired:
            raise LoginRefused(str(expired)) from None
        except LoginFailed:
            raise LoginRefused("the login failed") from None

    async def _by_header(self, given: str, peer: str) -> tuple[Identity, Callable[[], bool]]:
        scheme, _, rest = given.partition(" ")
        if scheme.lower() == "basic":
            user, password = _basic(rest.strip())
            find = self._logins.passwords.fingerprint
            identity, before = await self.by_password(user, password, peer), find(user)
            return identity, lambda: before is not None and find(user) == before
        if scheme.lower() == "bearer":
            try:
                checked = await self._logins.by_token(rest.strip(), peer)
                ends_s = checked.expires_s + self._logins.config.oauth_clock_skew_ms / 1000
                return Identity(f"User:{checked.user}", checked.groups), lambda: time.time() < ends_s
            except LoginFailed:
                raise LoginRefused("the login failed") from None
        raise LoginRefused("the scheme of the Authorization header must be Basic or Bearer")

    def _is_open(self, path: str) -> bool:
        if path in _OPEN or path.startswith((_OPEN_BELOW, _OPEN_FOR_OIDC)):
            return True
        return bool(self._also_open) and (path == self._also_open or path.startswith(f"{self._also_open}/"))


def _refusal(refused: LoginRefused, headers: Headers, path: str) -> Response:
    """The error response, as clients of the schema registry and of the Iceberg catalog expect it."""
    if path == REGISTRY_PREFIX or path.startswith(REGISTRY_PREFIX + "/"):
        content = {"error_code": _NO_LOGIN, "message": refused.details.detail}
        return Response(msgspec.json.encode(content), 401, _challenge(headers), REGISTRY_MEDIA_TYPE)
    if is_iceberg(path):
        from ottla.http.iceberg.errors import CatalogError, error_response

        return error_response(CatalogError(401, refused.details.detail), _challenge(headers))
    return problem_response(refused, _challenge(headers))


def session_in(headers: Headers) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def _basic(encoded: str) -> tuple[str, str]:
    try:
        user, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        raise LoginRefused("malformed Basic credentials") from None
    if not colon:
        raise LoginRefused("malformed Basic credentials")
    return user, password


def _challenge(headers: Headers) -> dict[str, str]:
    """The challenge of a 401 response. The console has its own login form, so the browser must not show a dialog."""
    is_page = headers.get("sec-fetch-dest") == "empty"
    return {} if is_page else {"www-authenticate": 'Basic realm="ottla", charset="UTF-8", Bearer'}


def _peer(scope: Scope) -> str:
    host, port = scope.get("client") or ("?", 0)
    return f"{host}:{port}"
