"""OpenTelemetry traces of HTTP requests; the broker's requests become child spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from ottla.broker.tracing import name_http_request
from ottla.http.framework.guard import ROUTE

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ottla.broker.tracing import Tracing


class Traced:
    def __init__(self, app: ASGIApp, tracing: Tracing) -> None:
        self._app = app
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self._tracing.http_request(scope["method"], Headers(scope=scope)) as span:
            try:
                await self._app(scope, receive, noted)
            finally:
                name_http_request(span, scope["method"], scope.get(ROUTE, ""), status)
