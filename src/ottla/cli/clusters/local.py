"""`ottla cluster local`: a whole cluster on this machine, with one command."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ottla.cli.clusters.local_catalog import catalog_in
from ottla.cli.server.stopping import StopSignal
from ottla.core.config_sources import DEFAULT_HTTP_PORT
from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.cli.clusters.local_catalog import LocalCatalog

_ENOUGH: Final = 3
_START_S: Final = 60.0
_STOP_S: Final = 30.0
_LOOK_S: Final = 0.1


class LocalNode:
    """A broker in a separate process."""

    def __init__(self, number: int, folder: Path, arguments: Sequence[str]) -> None:
        self.number = number
        self.folder = folder
        self.ready_file = folder / "ready.json"
        self.log_file = folder / "broker.log"
        self._arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def command(self) -> list[str]:
        command = [sys.executable, "-m", "ottla", "serve", "--node-id", str(self.number)]
        return [*command, "--data-dir", str(self.folder / "data"), *self._arguments]

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ready_file.unlink(missing_ok=True)
        command = [*self.command, "--ready-file", str(self.ready_file)]
        with self.log_file.open("ab") as log:
            # In a separate session: this process forwards interrupts from the terminal, in order.
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def _last_log_line(self) -> str:
        lines = self.log_file.read_text(errors="replace").splitlines()
        return lines[-1].removeprefix("ottla: ") if lines else "it said nothing"

    def about(self) -> str:
        """Its address; valid once it is ready."""
        ready = json.loads(self.ready_file.read_text())
        console = f", console http://{ready['http']}" if ready.get("http") else ""
        return f"node {self.number}: Kafka {ready['kafka']}{console}, process {ready['pid']}"

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_S
        while not self.ready_file.exists():
            if self.process is None or self.process.poll() is not None or time.monotonic() > deadline:
                raise OttlaError(f"node {self.number} did not start: {self._last_log_line()}; see {self.log_file}")
            time.sleep(_LOOK_S)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def wait(self) -> None:
        if self.process is None:
            return
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class LocalCluster:
    """A catalog and some brokers, in one folder."""

    def __init__(
        self, folder: Path, catalog: LocalCatalog, nodes: int, ports: tuple[int, int], more: Sequence[str] = ()
    ) -> None:
        """`ports`: the first one for Kafka, 0 for free ones, and the first one for HTTP."""
        from ottla.cluster.server import free_port

        self.catalog = catalog
        port, http_port = ports
        factor = min(nodes, _ENOUGH)
        common = catalog.arguments
        for setting in (
            f"cluster.default_replication_factor={factor}",
            f"cluster.internal_replication_factor={factor}",
        ):
            common += ["--set", setting]
        common += more
        self.ports = [port + at if port else free_port() for at in range(nodes)]
        self.nodes = [
            LocalNode(
                at + 1,
                folder.absolute() / f"node-{at + 1}",
                [*common, "--port", str(kafka), "--http-port", str(http_port + at if http_port > 0 else http_port)],
            )
            for at, kafka in enumerate(self.ports)
        ]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def start(self) -> None:
        self.catalog.start()
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.wait_until_ready()

    def stop(self) -> None:
        """Stop the brokers first, cleanly and one after the other."""
        for node in self.nodes:
            node.stop()
        for node in self.nodes:
            node.wait()
        self.catalog.stop()


@click.command(
    epilog="""\b
Examples:
  ottla cluster local
  ottla cluster local --nodes 5 --port 19092 --http-port 18080
  ottla cluster local --data-dir /tmp/cluster --set log.flush=ack
  ottla cluster local --zookeeper                 (with a real ZooKeeper, which needs Java)
""",
)
@click.option("--nodes", type=click.IntRange(1, 20), default=3, show_default=True, help="Number of brokers.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default=Path("cluster"),
    show_default=True,
    help="Data folder.",
)
@click.option("--port", type=int, default=9092, show_default=True, help="First Kafka port; 0 picks free ports.")
@click.option(
    "--http-port", type=int, default=DEFAULT_HTTP_PORT, show_default=True, help="First HTTP port; -1 disables HTTP."
)
@click.option("--zookeeper", is_flag=True, help="Run a ZooKeeper instead of the built-in catalog.")
@click.option("--set", "assignments", metavar="SECTION.KEY=VALUE", multiple=True, help="Set a value for every broker.")
def local(nodes: int, data_dir: Path, assignments: tuple[str, ...], *, zookeeper: bool, **ports: int) -> None:
    """Run a cluster of several brokers on this machine, for development."""
    more = [word for assignment in assignments for word in ("--set", assignment)]
    catalog = catalog_in(data_dir, uses_zookeeper=zookeeper)
    cluster = LocalCluster(data_dir, catalog, nodes, (ports["port"], ports["http_port"]), more)
    ended = StopSignal()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    try:
        cluster.start()
        click.echo(f"a cluster of {nodes} is ready: Kafka on {cluster.bootstrap_servers}")
        for node in cluster.nodes:
            click.echo(node.about())
        click.echo(f"{catalog.about}, data and logs in {data_dir.resolve()}")
        _watch(cluster, ended)
    finally:
        cluster.stop()


def _watch(cluster: LocalCluster, ended: StopSignal) -> None:
    """Run until interrupted; a node that exits is reported, and the others continue."""
    missed: set[int] = set()
    while not ended.wait(0.5):
        for node in cluster.nodes:
            if node.number not in missed and node.process is not None and node.process.poll() is not None:
                missed.add(node.number)
                click.echo(f"node {node.number} has ended; see {node.log_file}. To start it again:", err=True)
                click.echo(f"  {shlex.join(node.command)}", err=True)
