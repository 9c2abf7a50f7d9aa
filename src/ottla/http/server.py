"""The HTTP port. It is bound at once, and served by uvicorn in the broker's event loop once uvicorn is imported.

Clients that connect before that wait in the kernel's queue for some tenths of a second; the Kafka port is not delayed.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.core.ids import Address
from ottla.http.queues.config import QueuesConfig
from ottla.http.registry_config import REGISTRY_PREFIX

if TYPE_CHECKING:
    import socket

    from ottla.broker.broker import Broker
    from ottla.http.config import HttpConfig
    from ottla.http.framework.loop_server import Serving

_logger: Final = logging.getLogger(__name__)


class HttpServer:
    def __init__(
        self,
        broker: Broker,
        config: HttpConfig,
        host: str,
        queues: QueuesConfig | None = None,
        *,
        registry_port: int = -1,
    ) -> None:
        """`registry_port` serves only the schema registry; -1 for none."""
        self.address = Address(config.host or host, config.port)
        self.registry_address = None if registry_port < 0 else Address(config.host or host, registry_port)
        self._tls = None
        if config.tls:
            given = config.cert_file, config.key_file, config.client_certificates
            self._tls = broker.security.http_tls(self.address, *given)
        self._broker = broker
        self._config = config
        self._queues = queues or QueuesConfig()
        self._sockets: list[socket.socket] = []
        self._registry_sockets: list[socket.socket] = []
        self._starting: asyncio.Task[Serving] | None = None

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://{self.address}"

    @property
    def schema_registry_url(self) -> str:
        """The URL for clients of the schema registry."""
        if self.registry_address is None:
            return f"{self.url}{REGISTRY_PREFIX}"
        return f"{'http' if self._tls is None else 'https'}://{self.registry_address}"

    async def bind(self) -> None:
        """Bind the ports; raises OSError if one is not available. From now on clients can connect."""
        self.address = await self._bind(self.address, self._sockets)
        if self.registry_address is not None:
            try:
                self.registry_address = await self._bind(self.registry_address, self._registry_sockets)
            except OSError as refused:
                why = refused.strerror or str(refused)
                refused.add_note(f"{self.registry_address} for the schema registry: {why}; see schema_registry.port")
                raise

    async def _bind(self, address: Address, sockets: list[socket.socket]) -> Address:
        try:
            sockets += await self._broker.listener.bind(address)
        except OSError:
            self._close()
            raise
        return Address(*sockets[0].getsockname()[:2])

    def start(self) -> None:
        """Start serving, as soon as the required modules are imported."""
        self._starting = asyncio.get_running_loop().create_task(self._start())
        self._starting.add_done_callback(_report)

    async def _start(self) -> Serving:
        try:
            serving_type = await asyncio.get_running_loop().run_in_executor(None, _import)
            serving = serving_type(self._broker, self._config, self._queues)
            await serving.start(self._sockets, self._tls, self._registry_sockets)
        except BaseException:
            self._close()
            raise
        return serving

    async def stop(self) -> None:
        """Complete requests in progress, end the tails, and close."""
        if self._starting is not None:
            try:
                serving = await self._starting
            except Exception:  # noqa: BLE001 - reported when it happened
                return
            finally:
                self._close()
            await serving.stop()

    def _close(self) -> None:
        for listening in (*self._sockets, *self._registry_sockets):
            listening.close()


def _import() -> type[Serving]:
    from ottla.http.framework.loop_server import Serving

    return Serving


def _report(task: asyncio.Task[Serving]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _logger.error("could not start the HTTP server", exc_info=error)
