"""Middleware of all requests: rejects cross-site requests, and counts."""

from __future__ import annotations

import ipaddress
import socket
import time
from functools import cache
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers

from ottla.http.framework.problems import Problem, problem_response

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ottla.http.framework.stats import HttpStats

ROUTE: Final = "ottla.route"
"""Scope key of the declared path of the endpoint."""
_HEADERS: Final = ((b"x-content-type-options", b"nosniff"),)
_SAME_ORIGIN: Final = (b"cross-origin-resource-policy", b"same-origin")
_SAFE: Final = ("GET", "HEAD", "OPTIONS")


class Guard:
    """Wraps the router: counts requests, and rejects those from pages of other web sites."""

    def __init__(
        self,
        app: ASGIApp,
        stats: HttpStats,
        origins: Collection[str] = (),
        *,
        hosts: Collection[str] | None = None,
        setting: str = "http.allowed_hosts",
    ) -> None:
        """`hosts` are the known host names, if no authentication is required; otherwise None."""
        self._app = app
        self._stats = stats
        self._origins = origins
        self._setting = setting
        named = {origin.partition("://")[2].partition(":")[0] for origin in origins}
        self._hosts = None if hosts is None else {name.lower() for name in (*hosts, *named)}
        self._headers = _HEADERS if origins else (*_HEADERS, _SAME_ORIGIN)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        # Routes match the raw path: an encoded slash is part of a name, not a separator.
        scope["path"] = scope["raw_path"].decode("ascii")
        began_ns = time.perf_counter_ns()
        status = 0

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                sent = message.get("headers", ())
                missing = (each for each in self._headers if all(each[0] != name for name, _ in sent))
                message["headers"] = [*sent, *missing]
            await send(message)

        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await problem_response(refusal, {"connection": "close"})(scope, receive, counted)
            else:
                await self._app(scope, receive, counted)
        finally:
            self._stats.requests[scope["method"], scope.get(ROUTE, ""), status] += 1
            self._stats.times.add(time.perf_counter_ns() - began_ns)

    def _refusal(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        if self._is_rebound(scope, headers.get("host", "")):
            hint = f"Use an IP address or localhost, or add the name to {self._setting}."
            return Problem(403, f"unknown host name {headers['host']}", hint=hint)
        if scope["method"] not in _SAFE and self._is_cross_site(headers):
            hint = "Add the origin to http.cors_origins to allow it."
            return Problem(403, "cross-site request rejected", hint=hint)
        return None

    def _is_rebound(self, scope: Scope, host: str) -> bool:
        """Whether the request is for an unknown host name.

        A page of a site whose name was made to resolve to this machine is same-origin for a browser, and may read
        and write everything (DNS rebinding). With authentication, the page has no credentials. At a publicly
        routable address, the page has no more access than its owner.
        """
        if self._hosts is None or "*" in self._hosts or not _is_site_name(host):
            return False
        server = scope.get("server")
        return _name_in(host) not in self._hosts and server is not None and not _is_public(server[0])

    def _is_cross_site(self, headers: Headers) -> bool:
        """Whether the browser reports another origin: it sends the origin with every request that may change
        something.
        """
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "none") == "cross-site"
        if "*" in self._origins or origin in self._origins:
            return False
        return origin.partition("://")[2] != headers.get("host", "")


@cache
def _is_public(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_global
    except ValueError:
        return False


_OWN_ENDINGS: Final = (".localhost", ".local", ".internal", ".test")
"""Suffixes that do not exist in the public DNS (RFC 6761, RFC 6762)."""


def _is_site_name(host: str) -> bool:
    """Whether it could be a public name: neither an address nor a name without a dot, as in /etc/hosts."""
    name = _name_in(host)
    if "." not in name or name.endswith(_OWN_ENDINGS) or name == _own_name():
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return True
    return False


def _name_in(host: str) -> str:
    """The host name in a Host header, without the port."""
    return host.lower() if host.startswith("[") else host.partition(":")[0].lower().rstrip(".")


@cache
def _own_name() -> str:
    return socket.gethostname().lower()
