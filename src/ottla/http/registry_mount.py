"""The endpoints of the schema registry: below `/schema-registry`, and at the root of a dedicated port.

The registry is imported with the first request to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.http.registry_config import REGISTRY_PREFIX

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from ottla.http.framework.endpoints import HttpState


def with_registry(http_state: HttpState, others: ASGIApp) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path != REGISTRY_PREFIX and not path.startswith(REGISTRY_PREFIX + "/"):
            await others(scope, receive, send)
            return
        if http_state.registry is None:
            from ottla.http.registry.app import Registry

            http_state.registry = Registry(http_state)
        await http_state.registry(scope, receive, send)

    return app


def at_root(app: ASGIApp) -> ASGIApp:
    """Serve only the registry, without its prefix."""

    async def prefixed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = scope["raw_path"].rstrip(b"/") if scope["raw_path"] != b"/" else b"/"
            scope["raw_path"] = REGISTRY_PREFIX.encode() + path
            scope["path"] = scope["raw_path"].decode("ascii", "replace")
        await app(scope, receive, send)

    return prefixed
