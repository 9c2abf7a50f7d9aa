"""One broker of a test cluster, which can be killed and restarted with its data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ottla.broker.embedded import EmbeddedBroker
from ottla.broker.faults.faults import Faults
from ottla.broker.faults.watching import watch
from ottla.broker.inherited import Inherited
from ottla.broker.interfaces.in_process_requests import LocalClient
from ottla.storage.folder.data_dir import CLEAN_SHUTDOWN
from ottla.testing.history import History

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path
    from typing import Any, TypeVar

    from ottla.broker.broker import Broker
    from ottla.broker.settings import Settings
    from ottla.testing.catalog_keeper import CatalogKeeper
    from ottla.testing.clock import MovableClock

    T = TypeVar("T")


class ClusterNode:
    def __init__(self, folder: Path, settings: Settings, clock: MovableClock, keeper: CatalogKeeper) -> None:
        self.id = settings.broker.node_id
        self.faults = Faults()
        """Fault injection of this node."""
        self.requests = History()
        """Requests of clients and other nodes to this one."""
        self._folder = folder
        self._settings = settings
        self._clock = clock
        self._keeper = keeper
        self._embedded: EmbeddedBroker | None = None

    def __repr__(self) -> str:
        return f"<node {self.id} at {self.bootstrap_servers}{'' if self.is_running else ', not running'}>"

    @property
    def is_running(self) -> bool:
        return self._embedded is not None

    @property
    def bootstrap_servers(self) -> str:
        """The address of this node, also while it is stopped."""
        return f"{self._settings.net.host}:{self._settings.net.port}"

    @property
    def broker(self) -> Broker:
        """The broker; it belongs to its event loop."""
        return self._running.broker

    def start(self) -> None:
        """Start the node, at its previous address if it had one."""
        if self._embedded is not None:
            raise RuntimeError(f"node {self.id} is already running")
        self._link = self._keeper.link()
        inherited = Inherited(self._link, ())
        embedded = EmbeddedBroker(self._folder, self._settings, self._clock, is_short_lived=True, inherited=inherited)
        self._embedded = embedded.__enter__()
        self.call(self._watch())
        self._settings = self._settings._replace(net=replace(self._settings.net, port=self.broker.address.port))

    def stop(self) -> None:
        """Shut down cleanly: leadership moves to other nodes first."""
        self.faults.forget_broker()
        embedded, self._embedded = self._running, None
        embedded.__exit__()

    def kill(self) -> None:
        """Stop abruptly: connections break. Written data stays."""
        self.call(self.broker.listener.stop(0))
        self._link.close()
        self.stop()
        (self._folder / CLEAN_SHUTDOWN).unlink(missing_ok=True)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run this in the broker's thread, and return its result."""
        return self._running.call(work)

    def client(self) -> LocalClient:
        return self._own

    @property
    def _running(self) -> EmbeddedBroker:
        if self._embedded is None:
            raise RuntimeError(f"node {self.id} is not running")
        return self._embedded

    async def _watch(self) -> None:
        self._own = LocalClient(self.broker, "ottla-testing", ("127.0.0.1", 0))
        watch(self.broker, self.faults, self.requests.add, self._own)
