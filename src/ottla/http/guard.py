"""What every request passes through: no other site's pages get in here, and everything is counted."""

from __future__ import annotations

import ipaddress
import socket
import time
from functools import cache
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers

from ottla.http.problems import Problem, problem_response

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ottla.http.stats import HttpStats

ROUTE: Final = "ottla.route"
"""Where in a scope the path is that its endpoint is declared with."""
_SAFE: Final = ("GET", "HEAD", "OPTIONS")


class Guard:
    """Around the router: counts, and refuses what another web site's page makes a browser send."""

    def __init__(
        self, app: ASGIApp, stats: HttpStats, origins: Collection[str], *, lets_anybody_in: bool = False
    ) -> None:
        self._app = app
        self._stats = stats
        self._origins = origins
        self._hosts = {origin.partition("://")[2] for origin in origins}
        self._lets_anybody_in = lets_anybody_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        # Routes match the path as it was sent: an encoded slash is part of a name and no separator.
        scope["path"] = scope["raw_path"].decode("ascii")
        began_ns = time.perf_counter_ns()
        status = 0

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
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
            hint = "Use localhost or an IP address, or add the site to http.cors_origins."
            return Problem(403, f"this machine is not known as {headers['host']}", hint=hint)
        if scope["method"] not in _SAFE and self._is_from_elsewhere(headers):
            hint = "Add the site to http.cors_origins if its pages may write here."
            return Problem(403, "this request comes from a page of another web site", hint=hint)
        return None

    def _is_rebound(self, scope: Scope, host: str) -> bool:
        """Whether a site's name leads to this machine itself.

        To a browser, a page of a site whose name was made to lead here comes from here, and may read and write
        everything (DNS rebinding). Whoever has to log in first has nothing to fear from it.
        """
        if not self._lets_anybody_in or "*" in self._origins or host in self._hosts or not _is_name_of_a_site(host):
            return False
        server = scope.get("server")
        return server is not None and _is_loopback(server[0])

    def _is_from_elsewhere(self, headers: Headers) -> bool:
        """Whether a browser says so: it names the origin of every request that may change something."""
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "none") == "cross-site"
        if "*" in self._origins or origin in self._origins:
            return False
        return origin.partition("://")[2] != headers.get("host", "")


@cache
def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


_OWN_ENDINGS: Final = (".localhost", ".local", ".internal", ".test")
"""Of names that nobody can have in the public DNS (RFC 6761, RFC 6762)."""


def _is_name_of_a_site(host: str) -> bool:
    """Whether anybody could own it: no address, and no name without a dot, as those in /etc/hosts often are."""
    name = host.lower() if host.startswith("[") else host.partition(":")[0].lower().rstrip(".")
    if "." not in name or name.endswith(_OWN_ENDINGS) or name == _own_name():
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return True
    return False


@cache
def _own_name() -> str:
    return socket.gethostname().lower()
