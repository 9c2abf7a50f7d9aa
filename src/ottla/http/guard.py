"""What every request passes through: no other site's pages write here, and everything is counted."""

from __future__ import annotations

import time
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

    def __init__(self, app: ASGIApp, stats: HttpStats, origins: Collection[str]) -> None:
        self._app = app
        self._stats = stats
        self._origins = origins

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
            if scope["method"] not in _SAFE and self._is_from_elsewhere(Headers(scope=scope)):
                hint = "Add the site to http.cors_origins if its pages may write here."
                refusal = Problem(403, "this request comes from a page of another web site", hint=hint)
                await problem_response(refusal, {"connection": "close"})(scope, receive, counted)
            else:
                await self._app(scope, receive, counted)
        finally:
            self._stats.requests[scope["method"], scope.get(ROUTE, ""), status] += 1
            self._stats.times.add(time.perf_counter_ns() - began_ns)

    def _is_from_elsewhere(self, headers: Headers) -> bool:
        """Whether a browser says so: it names the origin of every request that may change something."""
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "none") == "cross-site"
        if "*" in self._origins or origin in self._origins:
            return False
        return origin.partition("://")[2] != headers.get("host", "")
