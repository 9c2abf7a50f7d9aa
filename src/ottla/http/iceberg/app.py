"""The catalog as an ASGI application below `/iceberg`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router

from ottla.core.errors import ApiError
from ottla.http.framework.bodies import BodyRefused
from ottla.http.framework.endpoints import Call, Endpoint, others
from ottla.http.framework.guard import ROUTE
from ottla.http.framework.problems import Problem
from ottla.http.iceberg.errors import CatalogError, error_response, of_api_error
from ottla.http.iceberg.handlers import CatalogCall
from ottla.http.iceberg.lake import Lake
from ottla.http.iceberg.openapi import describe
from ottla.http.iceberg.served import DESCRIBED, REFUSED, Served, endpoints
from ottla.http.iceberg_mount import ICEBERG_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Receive, Scope, Send

    from ottla.http.framework.endpoints import HttpState

_logger: Final = logging.getLogger(__name__)
_JSON: Final = "application/json"
_HINT: Final = "GET /iceberg/openapi.json describes this API"


class IcebergCatalog:
    """Belongs inside a `Guard`."""

    def __init__(self, http_state: HttpState) -> None:
        self._http_state = http_state
        self._lake = Lake(http_state.broker.lake_folder)
        self._endpoints = endpoints()
        self._router = Router(list(self._routes()), redirect_slashes=False, default=_not_found)

    def _routes(self) -> Iterator[Route]:
        by_path: dict[str, dict[str, Served]] = {}
        for served in (*DESCRIBED, *REFUSED, Served("GET", "/openapi.json", _description, "This description")):
            by_path.setdefault(ICEBERG_PREFIX + served.path, {})[served.method] = served
        for path, by_method in by_path.items():
            yield Route(path, _Resource(self, by_method))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._router(scope, receive, send)

    async def answered(self, request: Request, served: Served) -> Response:
        endpoint = Endpoint(served.method, ICEBERG_PREFIX + served.path, served.handle, served.summary)
        call = CatalogCall(Call(request, self._http_state, endpoint), self._lake, self._endpoints)
        try:
            answer = await served.handle(call)
        except CatalogError as error:
            return error_response(error)
        except ApiError as refused:
            return error_response(of_api_error(refused))
        except Problem as problem:
            return error_response(CatalogError(problem.status, problem.details.detail), {"connection": "close"})
        except BodyRefused as refused:
            return error_response(CatalogError(refused.status, str(refused)), {"connection": "close"})
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as bug:  # noqa: BLE001 - a bug of ours must cost no more than this request
            _logger.error("internal error while answering %s %s", request.method, request.url.path, exc_info=bug)
            return error_response(CatalogError(500, "internal error; see the broker's log", "InternalServerError"))
        return answer if isinstance(answer, Response) else Response(msgspec.json.encode(answer), media_type=_JSON)


class _Resource:
    """All methods of one path."""

    def __init__(self, catalog: IcebergCatalog, by_method: dict[str, Served]) -> None:
        self._catalog = catalog
        self._by_method = by_method

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        served = self._by_method.get(scope["method"])
        if served is None:
            refusal = CatalogError(405, f"{scope['method']} is not allowed for {scope['path']}; {_HINT}")
            response = error_response(refusal, {"allow": ", ".join(self._by_method)})
        else:
            scope[ROUTE] = ICEBERG_PREFIX + served.path
            response = await self._catalog.answered(Request(scope, receive), served)
        await others()
        await response(scope, receive, send)


async def _description(_: CatalogCall) -> object:
    return describe(DESCRIBED)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    refusal = CatalogError(404, f"no endpoint {scope['method']} {scope['path']}; {_HINT}")
    await error_response(refusal)(scope, receive, send)
