"""The registry's API as a separate ASGI application, below `/schema-registry` or on a dedicated port."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router

from ottla.core.errors import ApiError, ErrorCode
from ottla.http.framework.bodies import BodyRefused
from ottla.http.framework.endpoints import Endpoint, others
from ottla.http.framework.guard import ROUTE
from ottla.http.framework.problems import Problem, problem_of
from ottla.http.registry.calls import RegistryCall
from ottla.http.registry.served import SERVED
from ottla.http.registry_config import REGISTRY_MEDIA_TYPE as MEDIA_TYPE
from ottla.http.registry_config import REGISTRY_PREFIX as PREFIX
from ottla.registry.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Receive, Scope, Send

    from ottla.http.framework.endpoints import HttpState
    from ottla.http.registry.served import Served

_logger: Final = logging.getLogger(__name__)

_JSON: Final = "application/json"
_TAKEN: Final = (MEDIA_TYPE, "application/vnd.schemaregistry+json", _JSON, "application/octet-stream", "")
_CONTEXT_KEY: Final = "ottla.registry.context"
_CONTEXT: Final = re.compile(r"/contexts/([^/]+)(/.+)")


class Registry:
    """An ASGI application that belongs inside a `Guard`; its paths begin with PREFIX."""

    def __init__(self, http_state: HttpState) -> None:
        self._http_state = http_state
        self.store = http_state.broker.schemas
        self._router = Router(list(self._routes()), redirect_slashes=False, default=_not_found)

    def _routes(self) -> Iterator[Route]:
        by_path: dict[str, dict[str, Served]] = {}
        for served in SERVED:
            by_path.setdefault(served.path, {})[served.method] = served
        for path, by_method in by_path.items():
            yield Route(path, _Resource(self, self._http_state, by_method))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(PREFIX) or "/"
        context = ""
        if (found := _CONTEXT.fullmatch(path)) is not None:
            context, path = found.groups()
        inner = {**scope, "path": path, _CONTEXT_KEY: context}
        try:
            await self._router(inner, receive, send)
        finally:
            scope[ROUTE] = inner.get(ROUTE, "")


class _Resource:
    def __init__(self, registry: Registry, http_state: HttpState, by_method: dict[str, Served]) -> None:
        self._registry = registry
        self._http_state = http_state
        self._by_method = by_method | ({"HEAD": by_method["GET"]} if "GET" in by_method else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        served = self._by_method.get(scope["method"])
        if served is None:
            response = _error(Refusal(405, "HTTP 405 Method Not Allowed"), request)
            response.headers["allow"] = ", ".join(self._by_method)
        else:
            scope[ROUTE] = PREFIX + served.path
            response = await self._answered(request, served)
        await others()
        await response(scope, receive, send)

    async def _answered(self, request: Request, served: Served) -> Response:
        endpoint = Endpoint(served.method, PREFIX + served.path, served.handle, served.summary)
        store = self._registry.store
        try:
            _check_types(request)
            call = RegistryCall(request, self._http_state, endpoint, store, unquote(request.scope[_CONTEXT_KEY]))
            await store.refresh()
            answer = await served.handle(call)
        except Refusal as refused:
            return _error(refused, request)
        except Problem as problem:
            return _error(Refusal(problem.status, problem.details.detail), request, closes=problem.status == 413)
        except BodyRefused as refused:
            return _error(Refusal(refused.status, str(refused)), request, closes=True)
        except ApiError as refused:
            return _error(_of_api_error(refused), request)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as bug:  # noqa: BLE001 - a bug of ours must cost no more than this request
            _logger.error("a bug while answering %s %s", request.method, request.url.path, exc_info=bug)
            return _error(Refusal(500, "a bug in the broker; its log says more"), request)
        if isinstance(answer, Response):
            if answer.body:
                answer.headers["content-type"] = _media_type(request)
            return answer
        return Response(msgspec.json.encode(answer), media_type=_media_type(request))


def _of_api_error(refused: ApiError) -> Refusal:
    """Map a broker error: not allowed is 403, and an unreadable log is the registry's 500."""
    status = problem_of(refused).status
    if status in (401, 403):
        return Refusal(status * 100 + 1, str(refused) or "not allowed")
    code = ErrorCode(refused.code)
    return Refusal(50002 if code.is_retriable else 50001, f"{code.name}: {refused}")


def _check_types(request: Request) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in _TAKEN and request.method in ("POST", "PUT"):
        raise Refusal(415, "HTTP 415 Unsupported Media Type")
    if _media_type(request) == "":
        raise Refusal(406, "HTTP 406 Not Acceptable")


def _media_type(request: Request) -> str:
    """The client's preferred media type among those that the registry supports."""
    accepted = [each.partition(";")[0].strip().lower() for each in request.headers.get("accept", "").split(",")]
    for each in accepted:
        if each in (MEDIA_TYPE, "*/*", "application/*", "", "application/octet-stream"):
            return MEDIA_TYPE
        if each in (_JSON, "application/vnd.schemaregistry+json"):
            return each
    return "text/plain" if "text/plain" in accepted or "text/*" in accepted else ""


def _error(refused: Refusal, request: Request, *, closes: bool = False) -> Response:
    content = msgspec.json.encode({"error_code": refused.code, "message": refused.message})
    headers = {"connection": "close"} if closes else None
    return Response(content, refused.status, headers, _media_type(request) or MEDIA_TYPE)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    await _error(Refusal(404, "HTTP 404 Not Found"), request)(scope, receive, send)
