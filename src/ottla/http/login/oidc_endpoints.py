"""`/v1/session/oidc`: browser logins through the OpenID Connect provider, and back-channel logouts."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from starlette.responses import RedirectResponse, Response

from ottla.core.security import LoginFailed
from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.models import RequestStruct
from ottla.http.framework.problems import Problem
from ottla.http.login.authentication import LoginRefused
from ottla.http.login.session_endpoints import with_session_cookie

if TYPE_CHECKING:
    from ottla.broker.security.oidc.logins import OidcLogins
    from ottla.http.framework.endpoints import Call
    from ottla.http.login.authentication import Login

_PATH: Final = "/v1/session/oidc"
_STATE_COOKIE: Final = "ottla_oidc_state"
_STATE_S: Final = 600
_MOST_TOKEN_BYTES: Final = 64 * 1024
_HINT: Final = "See the broker's log. Start again with GET /v1/session/oidc."


class Callback(RequestStruct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    state: str = ""
    code: str = ""
    error: str = ""
    error_description: str = ""


async def begin(call: Call) -> Response:
    _, oidc = _enabled(call)
    try:
        address, state = await oidc.begin()
    except LoginFailed as failed:
        raise Problem(502, f"the OpenID provider cannot be used: {failed}", hint=_HINT) from None
    response = RedirectResponse(address, 302, {"cache-control": "no-store"})
    # SameSite=Lax: the browser returns by a cross-site redirect.
    response.set_cookie(
        _STATE_COOKIE, state, max_age=_STATE_S, path=_PATH, httponly=True, samesite="lax", secure=_is_secure(call)
    )
    return response


async def finish(call: Call) -> Response:
    login, oidc = _enabled(call)
    given = call.query(Callback)
    if given.error:
        raise LoginRefused(f"the OpenID provider rejected the login: {given.error[:100]}")
    try:
        granted = await oidc.finish(given.code, given.state, _state_in(call), call.peer)
    except LoginFailed:
        raise LoginRefused("the login failed") from None
    response = with_session_cookie(RedirectResponse("/", 303), login.sessions.begin_granted(granted), call)
    response.delete_cookie(_STATE_COOKIE, path=_PATH, httponly=True, samesite="lax")
    return response


async def logged_out(call: Call) -> Response:
    """OpenID Connect Back-Channel Logout: end sessions on the provider's request."""
    login, oidc = _enabled(call)
    token = parse_qs(await _small_body(call)).get("logout_token", [""])[0]
    try:
        login.sessions.end_matching(await oidc.ended(token, call.peer))
    except LoginFailed:
        raise Problem(400, "the logout token is not valid") from None
    return Response(status_code=200, headers={"cache-control": "no-store"})


def _enabled(call: Call) -> tuple[Login, OidcLogins]:
    login = call.http_state.login
    if login is None or login.oidc is None:
        raise Problem(404, "no OpenID provider is configured", hint="Set security.oidc_issuer.")
    return login, login.oidc


def _state_in(call: Call) -> str:
    try:
        found = SimpleCookie(call.request.headers.get("cookie", "")).get(_STATE_COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


async def _small_body(call: Call) -> str:
    body = b""
    async for piece in call.request.stream():
        body += piece
        if len(body) > _MOST_TOKEN_BYTES:
            raise Problem(413, f"a logout token has at most {_MOST_TOKEN_BYTES} bytes")
    return body.decode("ascii", "replace")


def _is_secure(call: Call) -> bool:
    return call.request.url.scheme == "https"


ENDPOINTS: Final = (
    Endpoint("GET", _PATH, begin, "Log in through the OpenID provider", status=302),
    Endpoint("GET", f"{_PATH}/callback", finish, "Callback of the OpenID provider", query=Callback, status=303),
    Endpoint("POST", f"{_PATH}/logout", logged_out, "Back-channel logout by the OpenID provider"),
)
