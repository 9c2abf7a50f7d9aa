"""`/v1/session`: who one is, and logging in and out with a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from ottla.http.endpoints import JSON, Endpoint
from ottla.http.login import session_in
from ottla.http.models import Done, Given, Struct
from ottla.http.problems import Problem
from ottla.http.sessions import COOKIE, LIFETIME_S

if TYPE_CHECKING:
    from ottla.http.endpoints import Call

_MOST_BODY_BYTES: Final = 16 * 1024
"""Of a login: whoever sends it is not known yet."""


class WhoAmI(Struct, frozen=True, kw_only=True):
    principal: str
    needs_login: bool
    """Whether there is something that one has to log in for first."""
    has_users: bool
    """Whether clients say who they are here."""
    has_acls: bool
    """Whether users may do only what ACLs allow."""


class NewSession(Given, frozen=True, kw_only=True):
    user: str
    password: str


async def show_session(call: Call) -> WhoAmI:
    login = call.door.login
    from ottla.core.security import ANONYMOUS

    return WhoAmI(
        principal=call.principal,
        needs_login=login is not None and call.principal == ANONYMOUS,
        has_users=login is not None,
        has_acls=call.broker.security.authorizer is not None,
    )


async def begin_session(call: Call) -> Response:
    login = call.door.login
    if login is None:
        raise Problem(409, "nobody has to log in here")
    given = await call.body(NewSession, _MOST_BODY_BYTES)
    await login.by_password(given.user, given.password, call.peer)
    token = login.sessions.begin(given.user)
    if token is None:
        raise Problem(401, "the login failed")
    import msgspec

    response = Response(msgspec.json.encode(Done()), 201, media_type=JSON)
    response.set_cookie(
        COOKIE,
        token,
        max_age=LIFETIME_S,
        httponly=True,
        samesite="strict",
        secure=call.request.url.scheme == "https",
    )
    return response


async def end_session(call: Call) -> Response:
    token = session_in(call.request.headers)
    if call.door.login is not None and token is not None:
        call.door.login.sessions.end(token)
    response = Response(b'{"done":true}', media_type=JSON)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


ENDPOINTS: Final = (
    Endpoint("GET", "/v1/session", show_session, "Who one is", answer=WhoAmI),
    Endpoint("POST", "/v1/session", begin_session, "Log in with a browser", body=NewSession, answer=Done, status=201),
    Endpoint("DELETE", "/v1/session", end_session, "Log out", answer=Done),
)
