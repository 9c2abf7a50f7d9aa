"""The catalog of a local cluster: ZooKeeper's, or one that this process keeps and nodes reach through a socket file."""

from __future__ import annotations

import socket
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from ottla.testing.catalog_keeper import CatalogKeeper

_ZOOKEEPER: Final = "zookeeper"
_CATALOG: Final = "catalog"


class LocalCatalog(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...

    @property
    def arguments(self) -> list[str]:
        """What a node is started with; valid before the start."""
        ...

    @property
    def about(self) -> str: ...


def catalog_in(folder: Path, *, uses_zookeeper: bool) -> LocalCatalog:
    """ZooKeeper if wanted, or if the cluster in this folder was created with it."""
    folder = folder.absolute()
    if not uses_zookeeper and not (folder / _ZOOKEEPER).exists():
        return BuiltinCatalog(folder / _CATALOG)
    if (folder / _CATALOG).exists():
        raise OttlaError(f"the cluster in {folder} was created without ZooKeeper: leave out --zookeeper")
    return ZooKeeperCatalog(folder / _ZOOKEEPER)


class ZooKeeperCatalog:
    def __init__(self, folder: Path) -> None:
        from ottla.cluster.server import ZooKeeperServer, free_port

        self._server = ZooKeeperServer(folder, free_port())
        self.start = self._server.start
        self.stop = self._server.stop

    @property
    def arguments(self) -> list[str]:
        return ["--zookeeper", self._server.address]

    @property
    def about(self) -> str:
        return f"ZooKeeper on {self._server.address}"


class BuiltinCatalog:
    """The catalog of workers, for nodes that are started one by one. Nodes end when this process does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Not in the data folder: the path of a socket is limited to about 100 bytes.
        self._sockets = tempfile.TemporaryDirectory(prefix="ottla-")
        self._path = Path(self._sockets.name) / _CATALOG
        self._listening = socket.socket(socket.AF_UNIX)
        self._connections: list[socket.socket] = []
        self._keeper: CatalogKeeper | None = None

    def start(self) -> None:
        from ottla.storage.folder.folder_lock import FolderLock
        from ottla.testing.catalog_keeper import CatalogKeeper

        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = FolderLock(self._folder)
        self._keeper = CatalogKeeper(self._folder).__enter__()
        self._listening.bind(str(self._path))
        self._listening.listen()
        self._accepting = threading.Thread(target=self._accept, args=(self._keeper,), daemon=True)
        self._accepting.start()

    def stop(self) -> None:
        if self._keeper is not None:
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread
            self._accepting.join()
            for connection in self._connections:
                # Of a node that was started again by hand; it ends, too.
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._keeper.__exit__()
            self._lock.release()
        self._listening.close()
        self._sockets.cleanup()

    def _accept(self, keeper: CatalogKeeper) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self._connections.append(connection)
                keeper.serve(connection)

    @property
    def arguments(self) -> list[str]:
        return ["--catalog", str(self._path)]

    @property
    def about(self) -> str:
        return f"catalog in {self._folder}"
