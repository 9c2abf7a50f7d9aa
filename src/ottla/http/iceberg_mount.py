"""The Iceberg REST catalog below `/iceberg`, imported with the first request to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from ottla.http.framework.endpoints import HttpState

ICEBERG_PREFIX: Final = "/iceberg"


def is_iceberg(path: str) -> bool:
    return path == ICEBERG_PREFIX or path.startswith(ICEBERG_PREFIX + "/")


def with_iceberg(http_state: HttpState, others: ASGIApp) -> ASGIApp:
    catalog: ASGIApp | None = None

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal catalog
        if not is_iceberg(scope["path"]):
            await others(scope, receive, send)
            return
        if catalog is None:
            from ottla.http.iceberg.app import IcebergCatalog

            catalog = IcebergCatalog(http_state)
        await catalog(scope, receive, send)

    return app
