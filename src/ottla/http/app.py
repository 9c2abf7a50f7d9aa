"""Every endpoint there is, and what goes around them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route

from ottla.core.errors import ApiError
from ottla.http import (
    cluster,
    consumers,
    groups,
    health,
    messages,
    metrics,
    openapi,
    produce,
    resets,
    tail,
    topics,
    totals,
)
from ottla.http.endpoints import call
from ottla.http.guard import Guard
from ottla.http.pages import Console
from ottla.http.problems import Problem, problem_of, problem_response

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request
    from starlette.responses import Response

    from ottla.http.endpoints import Door, Endpoint

ENDPOINTS: Final[tuple[Endpoint, ...]] = (  # the busiest first: routes are tried in this order
    *produce.ENDPOINTS,
    *messages.ENDPOINTS,
    *consumers.ENDPOINTS,
    *health.ENDPOINTS,
    *metrics.ENDPOINTS,
    *tail.ENDPOINTS,
    *topics.ENDPOINTS,
    *groups.ENDPOINTS,
    *resets.ENDPOINTS,
    *cluster.ENDPOINTS,
    *totals.ENDPOINTS,
    *openapi.ENDPOINTS,
)

_GZIP_LEVEL: Final = 4
_GZIP_FROM_BYTES: Final = 1024
_METHODS: Final = ("GET", "POST", "PATCH", "DELETE")


def build_app(door: Door) -> Starlette:
    door.endpoints = ENDPOINTS
    middleware = [Middleware(GZipMiddleware, minimum_size=_GZIP_FROM_BYTES, compresslevel=_GZIP_LEVEL)]
    origins = door.config.cors_origins
    if origins:
        cors = Middleware(CORSMiddleware, allow_origins=origins, allow_methods=_METHODS, allow_headers=("*",))
        middleware.insert(0, cors)
    middleware.insert(0, Middleware(Guard, stats=door.stats, origins=frozenset(origins)))
    return Starlette(
        routes=list(_routes(door)),
        middleware=middleware,
        exception_handlers={
            Problem: _on_problem,
            ApiError: _on_refusal,
            HTTPException: _on_http_exception,
        },
    )


def _routes(door: Door) -> Iterable[Route]:
    for endpoint in ENDPOINTS:
        yield Route(endpoint.path, partial(call, door, endpoint), methods=[endpoint.method])
    yield from Console().routes()


async def _on_problem(_request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)  # noqa: S101 - as registered
    # Of a body that is not read to its end nobody knows how much is still to come.
    closing = {"connection": "close"} if problem.status in (408, 413) else None
    return problem_response(problem, closing)


async def _on_refusal(_request: Request, refused: Exception) -> Response:
    assert isinstance(refused, ApiError)  # noqa: S101 - as registered
    return problem_response(problem_of(refused))


async def _on_http_exception(request: Request, refused: Exception) -> Response:
    """No route of this path, or none of this method."""
    assert isinstance(refused, HTTPException)  # noqa: S101 - as registered
    hint = "GET /v1/openapi.json describes everything there is."
    detail = f"{request.method} {request.url.path} is not served"
    return problem_response(Problem(refused.status_code, detail, hint=hint), refused.headers)
