"""Errors of the catalog, as the specification of the Iceberg REST catalog has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from ottla.http.framework.problems import problem_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.core.errors import ApiError

_TYPES = {
    400: "BadRequestException",
    401: "NotAuthorizedException",
    403: "ForbiddenException",
    404: "NotFoundException",
    405: "UnsupportedOperationException",
    503: "ServiceUnavailableException",
}


class CatalogError(Exception):
    """An error response; `type` is the name of an exception of Iceberg's."""

    def __init__(self, status: int, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.type = kind or _TYPES.get(status, "RESTException")


class NoSuchNamespace(CatalogError):
    def __init__(self, namespace: str) -> None:
        super().__init__(404, f"Namespace does not exist: {namespace}", "NoSuchNamespaceException")


class NoSuchTable(CatalogError):
    def __init__(self, namespace: str, table: str) -> None:
        super().__init__(404, f"Table does not exist: {namespace}.{table}", "NoSuchTableException")


class NoSuchView(CatalogError):
    def __init__(self, namespace: str, view: str) -> None:
        super().__init__(404, f"View does not exist: {namespace}.{view}", "NoSuchViewException")


def error_response(error: CatalogError, headers: Mapping[str, str] | None = None) -> Response:
    about = {"message": str(error), "type": error.type, "code": error.status}
    return Response(msgspec.json.encode({"error": about}), error.status, headers, "application/json")


def of_api_error(refused: ApiError) -> CatalogError:
    return CatalogError(problem_of(refused).status, str(refused) or refused.code.name)
