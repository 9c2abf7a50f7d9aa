"""`ottla serve`: run the broker until told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from ottla import __version__
from ottla.cli.server.logs import set_up_logging
from ottla.cli.server.ready import say_ready
from ottla.cli.settings import with_settings_options
from ottla.core.config import Flag
from ottla.core.errors import OttlaError
from ottla.core.hosts import is_loopback
from ottla.core.quick_imports import without_garbage_collection
from ottla.event_loop import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.inherited import Inherited
    from ottla.cli.workers.plan import Configs
    from ottla.core.ids import Address
    from ottla.dmqp.config import DmqpConfig
    from ottla.dmqp.server import DmqpServer
    from ottla.http.server import HttpServer
    from ottla.net.config import NetConfig

    SayReady = Callable[[Broker, HttpServer | None], None]

_EXIT_IN_A_HURRY: Final = 143
_EXPOSURES_FILE: Final = "dmqp.json"
_FAULTS_WARNING: Final = (
    "ottla: WARNING: FAULTS ARE ENABLED: every client of /v1/faults can make this broker fail. For tests only."
)
_LAST_SHUTDOWN: Final = {True: "clean shutdown", False: "no clean shutdown: logs are recovered when they are opened"}
_logger: Final = logging.getLogger("ottla.serve")
_COLLECT_AFTER: Final = (10_000, 20, 50)


class Modes(NamedTuple):
    """Options that exist only on the command line."""

    enable_faults: bool = False
    ephemeral: bool = False
    load: Callable[[], Configs] | None = None
    """Reads the configuration again, on SIGHUP."""
    logging: tuple[str, str] = ("warning", "text")
    """The level and the format, for processes that it starts."""


@click.command(
    epilog="""\b
Examples:
  ottla serve
  ottla serve --data-dir /var/lib/ottla --port 9092
  ottla serve --config /etc/ottla.toml --log-level info --log-format json
  ottla serve --listener PLAINTEXT://127.0.0.1:9092 --listener SASL_SSL://0.0.0.0:9093 --config ottla.toml
  ottla serve --host 0.0.0.0 --advertised kafka.example:9092
  ottla serve --zookeeper zk1:2181,zk2:2181 --node-id 2 --rack b
  ottla serve --workers 4 --data-dir /var/lib/ottla
  ottla serve --ephemeral --ready-file ready.json
  ottla serve --ephemeral --enable-faults --ready-file ready.json
""",
)
@with_settings_options
@click.option("--data-dir", type=click.Path(path_type=Path), help="Data folder [default: data].")
@click.option("--host", help="Address to listen on [default: 127.0.0.1].")
@click.option("--port", type=int, help="Kafka port; 0 picks a free one [default: 9092].")
@click.option(
    "--listener",
    "listeners",
    metavar="PROTOCOL://HOST:PORT",
    multiple=True,
    help="Listener (PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL), instead of --host and --port; may be repeated.",
)
@click.option("--http-port", type=int, help="HTTP port; 0 picks a free one, -1 disables HTTP [default: 8080].")
@click.option("--advertised", metavar="HOST:PORT", help="Advertised address for clients and other nodes.")
@click.option("--zookeeper", metavar="HOST:PORT,…", help="Join the cluster in this ZooKeeper.")
@click.option("--catalog", metavar="SOCKET", hidden=True, help="Join the cluster of `ottla cluster local`.")
@click.option("--node-id", type=int, help="Broker id in the cluster [default: 0].")
@click.option("--rack", help="Rack of this node; replicas are spread over racks.")
@click.option("--workers", type=int, help="Run this many broker processes behind one port to use more cores.")
@click.option("--adopt", is_flag=True, help="With --workers: convert a single broker's data folder; cannot be undone.")
@click.option(
    "--ephemeral",
    is_flag=True,
    help="For tests: temporary data and free ports.",
)
@click.option("--enable-faults", is_flag=True, help="For tests: enable fault injection over /v1/faults.")
@click.option(
    "--ready-file", type=click.Path(path_type=Path), help="Write the addresses to this file, as JSON, once ready."
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="warning",
    show_default=True,
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def serve(  # noqa: PLR0913
    *,
    config_file: Path | None,
    assignments: Sequence[str],
    adopt: bool,
    ephemeral: bool,
    enable_faults: bool,
    ready_file: Path | None,
    log_level: str,
    log_format: str,
    **options: object,
) -> None:
    """Run the broker."""
    set_up_logging(log_level, log_format)
    if ready_file is not None:
        # A ready file of an earlier run would announce readiness too early.
        ready_file.unlink(missing_ok=True)
    given = _flags(options)
    with ExitStack() as at_exit:
        if ephemeral:
            given = at_exit.enter_context(_ephemeral(given))
        with without_garbage_collection():
            from ottla.cli.server.loading import broker_settings

            configs = broker_settings(config_file, assignments, given)
        if configs.workers.count:
            from ottla.cli.workers.plan import Logging
            from ottla.cli.workers.supervisor import supervise

            if enable_faults:
                raise click.UsageError("--enable-faults cannot be used with --workers")
            asyncio.run(supervise(configs, Logging(log_level, log_format), ready_file, adopts=adopt))
        elif adopt:
            raise click.UsageError("--adopt needs --workers")
        else:
            modes = Modes(
                enable_faults,
                ephemeral,
                lambda: broker_settings(config_file, assignments, given),
                (log_level, log_format),
            )
            announce = partial(say_ready, ready_file=ready_file, style=log_format)
            run(serve_until_stopped(configs, announce, _inherited(options["catalog"]), modes))


def _inherited(catalog: object) -> Inherited | None:
    """The catalog of `ottla cluster local`, if this is a node of it."""
    if catalog is None:
        return None
    from ottla.broker.inherited import Inherited
    from ottla.cluster.builtin.link import connect_to

    return Inherited(connect_to(str(catalog)), ())


def _flags(options: Mapping[str, object]) -> dict[str, Flag]:
    """The settings that options of the command give."""
    listeners = options["listeners"]
    flags = {
        "broker.data_dir": ("--data-dir", options["data_dir"]),
        "net.host": ("--host", options["host"]),
        "net.port": ("--port", options["port"]),
        "net.listeners": ("--listener", ",".join(listeners) if isinstance(listeners, tuple) and listeners else None),
        "http.port": ("--http-port", options["http_port"]),
        "net.advertised": ("--advertised", options["advertised"]),
        "cluster.zookeeper": ("--zookeeper", options["zookeeper"]),
        "broker.node_id": ("--node-id", options["node_id"]),
        "cluster.rack": ("--rack", options["rack"]),
        "workers.count": ("--workers", options["workers"]),
    }
    return {key: Flag(flag, str(value)) for key, (flag, value) in flags.items() if value is not None}


@contextmanager
def _ephemeral(given: dict[str, Flag]) -> Iterator[dict[str, Flag]]:
    """The settings with a temporary folder, and free ports unless given."""
    from ottla.testing.folder import ephemeral_folder

    if "broker.data_dir" in given:
        raise click.UsageError("--data-dir cannot be used with --ephemeral")
    with ephemeral_folder() as folder:
        usual = {"broker.data_dir": str(folder), "net.port": "0", "http.port": "0"}
        yield {key: Flag("--ephemeral", value) for key, value in usual.items()} | given


async def serve_until_stopped(
    configs: Configs, say_ready: SayReady, inherited: Inherited | None = None, modes: Modes | None = None
) -> None:
    with without_garbage_collection():
        from ottla.broker.broker import Broker
        from ottla.net.descriptors import raise_limit

        gc.freeze()  # or the first collection would scan it all
    raise_limit()
    modes = modes or Modes()
    settings = configs.settings
    _logger.info("starting ottla %s: node %d, process %d", __version__, settings.broker.node_id, os.getpid())
    broker = Broker(settings, inherited=inherited)
    _logger.info(
        "opened %s: %d topics, %s",
        *(broker.data_dir.path, len(broker.topics.by_name), _LAST_SHUTDOWN[broker.data_dir.was_clean]),
    )
    _warn_about_descriptors(broker)
    stopping = asyncio.Event()
    _handle_signals(broker, configs, modes, stopping)
    if inherited is not None:
        loop = asyncio.get_running_loop()
        inherited.catalog.listen(lambda _: _stop_soon(loop, stopping))
    await _start(broker, settings.net)
    if modes.enable_faults:
        _enable_faults(broker)
    for warning in broker.security.warnings:
        click.echo(f"ottla: {warning}", err=True)
    http = await _bind_http(broker, configs)
    broker.http_address = None if http is None else http.address
    dmqp = await _open_dmqp(broker, configs.dmqp) if (broker.data_dir.path / _EXPOSURES_FILE).exists() else None
    say_ready(broker, http)
    await broker.dispatcher.load_all()
    # If nothing is exposed, no client waits for this.
    dmqp = dmqp or await _open_dmqp_if_possible(broker, configs.dmqp)
    if http is not None:
        http.start()
    _freeze_loaded_modules()
    _write_tables(broker, configs, modes.logging)
    await stopping.wait()
    for server in (broker.table_writer, http, dmqp, broker):
        if server is not None:
            await server.stop()
    _logger.info("stopped")


def _warn_about_descriptors(broker: Broker) -> None:
    from ottla.storage.segment_files.open_files import shortage_for

    if shortage := shortage_for(sum(1 for _ in broker.topics.partitions_here())):
        _logger.warning("%s; raise the limit (ulimit -Hn, LimitNOFILE= of a systemd unit)", shortage)


def _write_tables(broker: Broker, configs: Configs, logging: tuple[str, str]) -> None:
    """Start the table writer as soon as a topic has ottla.table.enable; until then nothing of it is imported."""

    def start() -> None:
        if broker.table_writer is None:
            from ottla.cli.lake.supervising import TableWriter
            from ottla.cli.workers.plan import Logging

            broker.table_writer = TableWriter(broker, configs, Logging(*logging))
        broker.table_writer.start()

    if configs.lake.writer:
        broker.topics.has_table = start
        if any(state.config.has_table for state in broker.topics.by_name.values()):
            start()


async def _start(broker: Broker, net: NetConfig) -> None:
    try:
        await broker.start()
    except OSError as refused:
        broker.close()
        [where, *_] = getattr(refused, "__notes__", (f"{net.host}:{net.port}",))
        raise OttlaError(f"cannot listen on {where}: {_reason(refused)}") from None
    except BaseException:
        broker.close()
        raise


def _enable_faults(broker: Broker) -> None:
    from ottla.broker.faults.faults import Faults
    from ottla.broker.faults.watching import watch

    watch(broker, Faults())
    click.echo(_FAULTS_WARNING, err=True)


def _import_dmqp(broker: Broker) -> type[DmqpServer]:
    if broker.cluster is not None:
        from ottla.dmqp.cluster_server import ClusterDmqpServer

        return ClusterDmqpServer
    from ottla.dmqp.server import DmqpServer

    return DmqpServer


async def _open_dmqp(broker: Broker, config: DmqpConfig) -> DmqpServer:
    # In a thread: Kafka clients are served already, or about to be.
    server_type = await asyncio.get_running_loop().run_in_executor(None, _import_dmqp, broker)
    try:
        server = server_type(broker, config)
        await server.start()
    except OttlaError:
        await broker.stop()
        raise
    if not is_loopback(config.host) and not config.client_ca_file:
        click.echo(
            f"ottla: DMQP on {config.host} without authentication: anyone who can reach it can push and pop", err=True
        )
    broker.shard_server = server
    return server


async def _open_dmqp_if_possible(broker: Broker, config: DmqpConfig) -> DmqpServer | None:
    """Without file descriptors, for example, it cannot be imported: Kafka clients are not affected."""
    try:
        return await _open_dmqp(broker, config)
    except (ImportError, OSError) as failed:
        click.echo(f"ottla: no DMQP: {failed}", err=True)
        return None


def _reload(broker: Broker, configs: Configs, load: Callable[[], Configs] | None) -> None:
    from ottla.cli.server.reloading import reload  # only now: no start should wait for it

    reload(broker, configs, load)


def _handle_signals(broker: Broker, configs: Configs, modes: Modes, stopping: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    doomed = broker.data_dir.path if modes.ephemeral else None
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, number, stopping, doomed)
    loop.add_signal_handler(signal.SIGHUP, _reload, broker, configs, modes.load)


def _on_signal(number: signal.Signals, stopping: asyncio.Event, doomed: Path | None) -> None:
    if stopping.is_set():
        # The second signal: acknowledged records are safe, and the next start checks the rest.
        if doomed is not None:
            import shutil  # only now: no start should wait for it

            shutil.rmtree(doomed, ignore_errors=True)
        os._exit(_EXIT_IN_A_HURRY)
    _logger.info("stopping: received %s", number.name)
    stopping.set()


def _stop_soon(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    """Exit the worker when its supervisor is gone; called in the thread of its catalog connection."""
    loop.call_soon_threadsafe(stopping.set)


def _freeze_loaded_modules() -> None:
    """Exclude loaded modules from garbage collection, which would scan them repeatedly during long requests.

    With Python's defaults that takes longer than the request, and blocks others.
    """
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


def _warn_about_http(address: Address, *, asks_who: bool, has_tls: bool) -> None:
    if not asks_who:
        click.echo(
            f"ottla: HTTP on {address} is open to the network without authentication: anyone who can reach it can "
            "read and write everything; set http.host, or let a listener authenticate its clients",
            err=True,
        )
    elif not has_tls:
        click.echo(f"ottla: HTTP on {address} takes passwords and is not encrypted: set http.tls", err=True)


async def _bind_http(broker: Broker, configs: Configs) -> HttpServer | None:
    config = configs.http
    if config.port < 0:
        return None
    from ottla.http.server import HttpServer

    registry_port = -1 if configs.registry is None else configs.registry.port
    http = HttpServer(broker, config, broker.settings.net.host, configs.queues, registry_port=registry_port)
    if not is_loopback(http.address.host):
        _warn_about_http(http.address, asks_who=broker.security.asks_who, has_tls=config.tls)
    try:
        await http.bind()
    except OSError as refused:
        await broker.stop()
        [where, *_] = getattr(refused, "__notes__", (f"{http.address} for HTTP: {_reason(refused)}; see --http-port",))
        raise OttlaError(f"cannot listen on {where}") from None
    return http


def _reason(refused: OSError) -> str:
    """The operating system's message; the event loop's repeats the address in Python's notation."""
    if refused.errno is not None and refused.errno > 0:
        return os.strerror(refused.errno)
    return refused.strerror or str(refused)
