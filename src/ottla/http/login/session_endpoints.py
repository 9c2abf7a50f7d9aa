"""`/v1/session`: the current user, and browser login and logout."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

from ottla.core.security import ANONYMOUS, CLUSTER_NAME, AclOperation, LoginFailed, ResourceType
from ottla.http.framework.endpoints import JSON, Endpoint
from ottla.http.framework.models import Done, RequestStruct, Struct
from ottla.http.framework.problems import Problem
from ottla.http.login.authentication import session_in
from ottla.http.login.browser_sessions import COOKIE, LIFETIME_S

if TYPE_CHECKING:
    from ottla.http.framework.endpoints import Call

_MOST_BODY_BYTES: Final = 16 * 1024
"""The maximum body size of a login, whose sender is not authenticated yet."""


_logger: Final = logging.getLogger(__name__)

_CLUSTER_OPERATIONS: Final = (
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)


class WhoAmI(Struct, frozen=True, kw_only=True):
    principal: str
    needs_login: bool
    """Whether a login is required."""
    login_url: str | None
    """The login page of the OpenID provider, if one is configured."""
    has_users: bool
    """Whether authentication is enabled."""
    has_acls: bool
    """Whether ACLs are enforced."""
    is_open_without_acl: bool
    """Whether resources without an ACL are open to all users."""
    cluster_operations: list[str]
    """What the user may do with the cluster, such as DESCRIBE or ALTER. Finding out writes no audit line."""


class EndedSession(Struct, frozen=True, kw_only=True):
    done: bool = True
    logout_url: str | None = None
    """The logout page of the OpenID provider, after a login there."""


class NewSession(RequestStruct, frozen=True, kw_only=True):
    user: str
    password: str


async def show_session(call: Call) -> WhoAmI:
    login = call.http_state.login
    return WhoAmI(
        principal=call.principal,
        needs_login=login is not None and call.principal == ANONYMOUS,
        login_url=None if login is None or login.oidc is None else "/v1/session/oidc",
        has_users=login is not None,
        has_acls=call.broker.security.authorizer is not None,
        is_open_without_acl=call.broker.security.config.allow_everyone_if_no_acl,
        cluster_operations=[
            one.name for one in _CLUSTER_OPERATIONS if call.may(one, ResourceType.CLUSTER, CLUSTER_NAME)
        ],
    )


async def begin_session(call: Call) -> Response:
    login = call.http_state.login
    if login is None:
        raise Problem(409, "authentication is disabled")
    given = await call.body(NewSession, _MOST_BODY_BYTES)
    await login.by_password(given.user, given.password, call.peer)
    token = login.sessions.begin(given.user)
    if token is None:
        raise Problem(401, "the login failed")
    return with_session_cookie(Response(msgspec.json.encode(Done()), 201, media_type=JSON), token, call)


def with_session_cookie(response: Response, token: str, call: Call) -> Response:
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
    login, token = call.http_state.login, session_in(call.request.headers)
    ended = None if login is None or token is None else login.sessions.end(token)
    logout_url = None
    if login is not None and login.oidc is not None and ended is not None and ended.granted is not None:
        try:
            logout_url = await login.oidc.logout_url(ended.granted)
        except LoginFailed as unknown:
            _logger.warning("could not look up the logout page of the OpenID provider: %s", unknown)
    response = Response(msgspec.json.encode(EndedSession(logout_url=logout_url)), media_type=JSON)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


ENDPOINTS: Final = (
    Endpoint("GET", "/v1/session", show_session, "The current user", answer=WhoAmI),
    Endpoint("POST", "/v1/session", begin_session, "Log in from a browser", body=NewSession, answer=Done, status=201),
    Endpoint("DELETE", "/v1/session", end_session, "Log out", answer=EndedSession),
)
