"""Who asks over HTTP: a password, a token, or the session that a browser has begun.

Everything needs one of them where Kafka clients have to say who they are; but for the console's own files, health
checks and the description of the API, which say nothing about anybody.
"""

from __future__ import annotations

import base64
import time
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers

from ottla.core.security import LoginFailed
from ottla.http.endpoints import IDENTITY, Identity
from ottla.http.problems import Problem, problem_response
from ottla.http.sessions import COOKIE, Sessions

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from ottla.broker.security.logins import Logins

_OPEN: Final = frozenset({"/", "/health", "/ready", "/v1/openapi.json", "/v1/session"})
_OPEN_BELOW: Final = "/console/"
_HINT: Final = "Send a user and password (HTTP Basic) or a bearer token."


class LoginRefused(Problem):
    def __init__(self, detail: str) -> None:
        super().__init__(401, detail, hint=_HINT)


class Login:
    """Around the router: finds out who asks, and refuses whom it does not know."""

    def __init__(self, app: ASGIApp, logins: Logins, *, also_open: str = "") -> None:
        """`also_open`: below this, somebody else asks for passwords."""
        self._app = app
        self._logins = logins
        self._also_open = also_open
        self.sessions = Sessions(logins.passwords.fingerprint, time.monotonic)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        try:
            scope[IDENTITY] = await self.identity(headers, _peer(scope))
        except LoginRefused as refused:
            if not self._is_open(scope["path"]):
                await problem_response(refused, _challenge(headers))(scope, receive, send)
                return
            scope[IDENTITY] = Identity()
        await self._app(scope, receive, send)

    async def identity(self, headers: Headers, peer: str) -> Identity:
        given = headers.get("authorization")
        if given is not None:
            return await self._by_header(given, peer)
        session = session_in(headers)
        found = None if session is None else self.sessions.identity(session)
        if found is None:
            raise LoginRefused("this broker asks who you are")
        return found

    async def by_password(self, user: str, password: str, peer: str) -> Identity:
        try:
            return Identity(await self._logins.by_password(user, password, peer))
        except LoginFailed:
            raise LoginRefused("the login failed") from None

    async def _by_header(self, given: str, peer: str) -> Identity:
        scheme, _, rest = given.partition(" ")
        if scheme.lower() == "basic":
            user, password = _basic(rest.strip())
            return await self.by_password(user, password, peer)
        if scheme.lower() == "bearer":
            try:
                checked = await self._logins.by_token(rest.strip(), peer)
                return Identity(f"User:{checked.user}", checked.groups)
            except LoginFailed:
                raise LoginRefused("the login failed") from None
        raise LoginRefused("this is neither Basic nor Bearer")

    def _is_open(self, path: str) -> bool:
        if path in _OPEN or path.startswith(_OPEN_BELOW):
            return True
        return bool(self._also_open) and (path == self._also_open or path.startswith(f"{self._also_open}/"))


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
        raise LoginRefused("this is no HTTP Basic") from None
    if not colon:
        raise LoginRefused("this is no HTTP Basic")
    return user, password


def _challenge(headers: Headers) -> dict[str, str]:
    """A page asks with a form of its own: the browser must not ask in front of it."""
    is_page = headers.get("sec-fetch-dest") == "empty"
    return {} if is_page else {"www-authenticate": 'Basic realm="ottla", charset="UTF-8", Bearer'}


def _peer(scope: Scope) -> str:
    host, port = scope.get("client") or ("?", 0)
    return f"{host}:{port}"
