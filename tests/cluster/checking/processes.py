"""A cluster of real processes that can be killed, paused, wiped and restarted."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.broker.raw_client import RawClient

import ottla
from ottla.cluster.server import free_port
from ottla.wire.messages.metadata import MetadataRequest

from .clocks import ShiftedClock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.cluster.server import ZooKeeperServer

    from .networks import Network
    from .slow_links import SlowLinks

_ROOT: Final = Path(__file__).parents[3]
_PATIENCE_S: Final = 30.0
_COUNT: Final = 3
_LOOK_AGAIN_S: Final = 0.05
SESSION_MS: Final = 2_000
ON_SLOW_LINKS: Final = ("cluster.session_timeout_ms=6000",)
"""The default. A ZooKeeper client drops a connection without an answer for about a third of its session minus 0.4 s."""


class Topology(NamedTuple):
    """Per-node options of the environment."""

    links: SlowLinks | None = None
    has_own_clocks: bool = False
    settings: tuple[str, ...] = ()
    http_port: int = -1


class Node:
    """`ottla serve`, always on the same port with the same folder."""

    def __init__(  # noqa: PLR0913
        self,
        folder: Path,
        number: int,
        zookeeper: str,
        module: str,
        network: Network | None,
        topology: Topology,
    ) -> None:
        self.number = number
        self.clock = ShiftedClock(folder, number) if topology.has_own_clocks else None
        self._settings = topology.settings
        self._http_port = topology.http_port
        self.host = "127.0.0.1" if network is None else network.address(number)
        self._inside = () if network is None else network.inside(number)
        self.folder = folder / f"node-{number}"
        self.log_path = folder / f"node-{number}.log"
        self.port = free_port()
        links = topology.links
        self._told_port = self.port if links is None else links.to(self.host, self.port)
        self._zookeeper = zookeeper
        self._module = module
        self._ready_file = folder / f"node-{number}.ready"
        self.process: subprocess.Popen[bytes] | None = None
        self.is_frozen = False

    @property
    def address(self) -> str:
        return f"{self.host}:{self._told_port}"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self, settings: Sequence[str] = ()) -> None:
        self._ready_file.unlink(missing_ok=True)
        self.is_frozen = False
        given = (
            f"cluster.session_timeout_ms={SESSION_MS}",
            "replication.replica_lag_time_max_ms=3000",
            *self._settings,
            *settings,
        )
        moved = {} if self.clock is None else self.clock.environment
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(*self._inside, sys.executable, "-m", self._module, "serve", "--zookeeper", self._zookeeper),
                    *("--node-id", str(self.number), "--host", self.host, "--port", str(self.port)),
                    *("--http-port", str(self._http_port), "--advertised", self.address),
                    *("--data-dir", str(self.folder), "--log-level", "info", "--ready-file", str(self._ready_file)),
                    *(part for setting in given for part in ("--set", setting)),
                ],
                cwd=_ROOT,
                env={**os.environ, **moved, "PYTHONPATH": f"{Path(ottla.__file__).parents[1]}:{_ROOT}"},
                stdout=log,
                stderr=log,
            )

    def wait_until_ready(self) -> None:
        until(lambda: self._ready_file.exists() or not self.is_running, f"node {self.number} to be ready")
        assert self.is_running, self.log_path.read_text()[-2000:]

    @property
    def schema_registry(self) -> str:
        """Its URL, once it is ready."""
        url: str = json.loads(self._ready_file.read_bytes())["schema_registry"]
        return url

    def kill(self) -> None:
        """Send SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(_PATIENCE_S)

    def stop(self) -> None:
        """Stop cleanly with SIGTERM."""
        assert self.process is not None
        self.process.terminate()
        assert self.process.wait(_PATIENCE_S) == 0, self.log_path.read_text()[-2000:]

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)
        self.is_frozen = True

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)
        self.is_frozen = False

    def _signal(self, what: signal.Signals) -> None:
        assert self.process is not None
        os.kill(self.process.pid, what)

    def wipe(self) -> None:
        """Replace the disk by an empty one."""
        shutil.rmtree(self.folder)

    def swap_disk(self, other: Path) -> None:
        """Swap the data folder with that folder; with an empty disk if it does not exist."""
        beside = self.folder.with_name(f"{self.folder.name}-swapped")
        self.folder.rename(beside)
        if other.exists():
            other.rename(self.folder)
        beside.rename(other)


class Processes:
    def __init__(
        self,
        folder: Path,
        zookeeper: str,
        module: str = "ottla",
        network: Network | None = None,
        topology: Topology = Topology(),  # noqa: B008 - it never changes
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.network = network
        self.links = topology.links
        self.nodes = {
            number: Node(folder, number, zookeeper, module, network, topology) for number in range(1, _COUNT + 1)
        }

    def __enter__(self) -> Processes:
        for node in self.nodes.values():
            node.start()
        for node in self.nodes.values():
            node.wait_until_ready()
        until(lambda: all(self._knows_all(node) for node in self.nodes.values()), "all to know of all")
        return self

    def _knows_all(self, node: Node) -> bool:
        with RawClient(node.address) as client:
            told = client.ask(MetadataRequest(topics=()), version=9)
        numbers = {broker.node_id for broker in told.brokers}
        return numbers == set(self.nodes) and told.controller_id in numbers

    def __exit__(self, *_: object) -> None:
        for node in self.nodes.values():
            if node.is_running:
                node.kill()

    def recover(self) -> None:
        """Clean up after a failed fault, so that the next one finds all nodes running."""
        for node in self.nodes.values():
            if node.is_running and node.is_frozen:
                node.thaw()
            if not node.is_running:
                node.start()

    @property
    def servers(self) -> str:
        return ",".join(node.address for node in self.nodes.values())


class Cluster(NamedTuple):
    processes: Processes
    zookeeper: ZooKeeperServer


def until(holds: Callable[[], object], what: str, timeout_s: float = _PATIENCE_S) -> None:
    """Poll for a condition that other processes bring about."""
    deadline_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline_s, f"waited in vain for {what}"
        time.sleep(_LOOK_AGAIN_S)
