"""The HTTP server of `ottla queue serve`: queues and /health, without a broker."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import uvicorn
from starlette.responses import JSONResponse
from starlette.routing import Route, Router

from ottla import __version__
from ottla.http.framework.bodies import Bodies
from ottla.http.framework.connection import LimitedConnection, Limits
from ottla.http.framework.guard import Guard
from ottla.http.framework.stats import HttpStats
from ottla.http.queues.handlers import Queues, mounted, not_served
from ottla.http.queues.store import open_store
from ottla.queue import read_key_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from ottla.http.queues.config import QueueServerConfig
    from ottla.http.queues.store import QueueStore


_MAX_CONNECTIONS: Final = 1000
_MAX_CONNECTIONS_PER_ADDRESS: Final = 500
_MAX_HELD_BYTES: Final = 128 * 1024 * 1024
"""These are the defaults of [http] in a broker."""


async def health(_: Request) -> JSONResponse:
    return JSONResponse({"status": "ok", "version": __version__})


def build_queue_app(store: QueueStore, config: QueueServerConfig) -> ASGIApp:
    others = Router([Route("/health", health)], redirect_slashes=False, default=not_served)
    queues = Queues(store, config, Bodies(config.max_stalled_ms / 1000, _MAX_HELD_BYTES))
    hosts = None if config.needs_password else config.allowed_hosts
    return Guard(mounted(queues, others), HttpStats(), hosts=hosts, setting="allowed_hosts")


def serve_queues(config: QueueServerConfig, on_ready: Callable[[str], None]) -> None:
    """Serve until stopped; `on_ready` gets the address."""
    store = open_store(config, None if config.key_file is None else read_key_file(config.key_file))
    host, port = config.address
    limits = Limits(
        max_stalled_s=config.max_stalled_ms / 1000,
        max_connections=_MAX_CONNECTIONS,
        max_connections_per_address=_MAX_CONNECTIONS_PER_ADDRESS,
    )
    settings = uvicorn.Config(
        build_queue_app(store, config),
        host=host,
        port=port,
        http=cast("Any", partial(LimitedConnection, limits)),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
    )
    try:
        _Server(settings, on_ready).run()
    finally:
        store.close()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._on_ready(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
