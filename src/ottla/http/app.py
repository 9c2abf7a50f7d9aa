"""All endpoints, and the middleware."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.routing import Route, Router

from ottla.http.framework.endpoints import call, others
from ottla.http.framework.guard import ROUTE, Guard
from ottla.http.framework.problems import Problem, problem_response
from ottla.http.iceberg_mount import with_iceberg
from ottla.http.login.authentication import Login
from ottla.http.queues.endpoints import QUEUE_ENDPOINTS
from ottla.http.queues.guard import guarded
from ottla.http.queues.handlers import PREFIX, mounted
from ottla.http.registry_mount import with_registry
from ottla.http.resources.pages import Console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Receive, Scope, Send

    from ottla.http.framework.endpoints import Endpoint, HttpState

_logger: Final = logging.getLogger(__name__)

_RESOURCES: Final = (  # modules with ENDPOINTS, the busiest first: routes are tried in this order
    "records.produce",
    "records.messages",
    "records.consumers",
    "monitoring.health",
    "monitoring.metrics",
    "records.tail",
    "resources.topics",
    "consumer_groups.groups",
    "consumer_groups.resets",
    "consumer_groups.topic_groups",
    "resources.transactions",
    "resources.pipelines",
    "resources.dmqp",
    "resources.cluster",
    "monitoring.totals",
    "monitoring.history",
    "login.session_endpoints",
    "login.oidc_endpoints",
    "resources.users",
    "resources.acls",
    "resources.roles",
    "resources.faults",
    "records.rest_proxy",
    "framework.openapi",
)
ENDPOINTS: Final[tuple[Endpoint, ...]] = tuple(
    endpoint for name in _RESOURCES for endpoint in import_module(f"{__package__}.{name}").ENDPOINTS
)

DESCRIBED: Final = (*ENDPOINTS, *QUEUE_ENDPOINTS)
"""All endpoints of the OpenAPI description; those of queues have a separate application."""

_GZIP_LEVEL: Final = 4
_GZIP_FROM_BYTES: Final = 1024
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_HINT: Final = "GET /v1/openapi.json describes all endpoints."


def build_app(http_state: HttpState, queues: ASGIApp) -> ASGIApp:
    http_state.endpoints = DESCRIBED
    rest = Router(list(_routes(http_state)), redirect_slashes=False, default=_not_found)
    app: ASGIApp = _Compressing(
        mounted(guarded(queues, http_state), with_registry(http_state, with_iceberg(http_state, rest)))
    )
    security = http_state.broker.security
    logins = security.logins
    if logins is not None:
        app = http_state.login = Login(app, security, logins, also_open=PREFIX if http_state.queues_ask else "")
    if (tracing := http_state.broker.tracing) is not None:
        from ottla.http.framework.traced import Traced

        app = Traced(app, tracing)
    origins = http_state.config.cors_origins
    if origins:
        app = CORSMiddleware(app, allow_origins=origins, allow_methods=_METHODS, allow_headers=("*",))
    hosts = None if logins is not None else (*http_state.config.allowed_hosts, *_advertised(http_state))
    return Guard(app, http_state.stats, frozenset(origins), hosts=hosts)


def _advertised(http_state: HttpState) -> Iterator[str]:
    """The host names in the advertised addresses."""
    for port in http_state.broker.listener.ports:
        if port.advertised is not None:
            yield port.advertised.host


def _routes(http_state: HttpState) -> Iterator[Route]:
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in (*ENDPOINTS, *Console().endpoints()):
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    for path, by_method in by_path.items():
        yield Route(path, _Resource(http_state, by_method))


class _Resource:
    """All methods of one path."""

    def __init__(self, http_state: HttpState, by_method: dict[str, Endpoint]) -> None:
        self._http_state = http_state
        self._by_method = by_method | ({"HEAD": by_method["GET"]} if "GET" in by_method else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        endpoint = self._by_method.get(method)
        if endpoint is None:
            refusal = Problem(405, f"{method} is not allowed for {scope['path']}", hint=_HINT)
            response = problem_response(refusal, {"allow": ", ".join(self._by_method)})
        else:
            scope[ROUTE] = endpoint.path
            response = await call(self._http_state, endpoint, Request(scope, receive))
        await others()
        try:
            await response(scope, receive, send)
        except Exception as broken:
            # A stream that has started can only be aborted.
            _logger.error("the response to %s %s was aborted: %s", method, scope["path"], broken)
            raise


class _Compressing:
    """Compresses responses with gzip for clients that accept it; other requests bypass it."""

    def __init__(self, app: ASGIApp) -> None:
        self._plain = app
        self._compressed = GZipMiddleware(app, _GZIP_FROM_BYTES, _GZIP_LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        takes_gzip = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        await (self._compressed if takes_gzip else self._plain)(scope, receive, send)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    refusal = Problem(404, f"no endpoint {scope['method']} {scope['path']}", hint=_HINT)
    await problem_response(refusal)(scope, receive, send)
