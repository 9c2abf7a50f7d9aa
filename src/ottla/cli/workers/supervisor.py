"""The process of `ottla serve --workers N`: binds the ports, stores the catalog, and supervises the workers."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ottla.broker.upkeep.key_rotation import open_sealer
from ottla.cli.server.ready import announce
from ottla.cli.workers.folder import WorkersFolder
from ottla.cli.workers.plan import check, http_ports, shared_listeners, worker_configs
from ottla.cli.workers.ports import Ports
from ottla.cli.workers.process import Worker
from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.cli.workers.plan import Configs, Logging


async def supervise(configs: Configs, logged: Logging, ready_file: Path | None, *, adopts: bool) -> None:
    """Run until stopped. Raises OttlaError if not all workers can be started."""
    check(configs)
    with ExitStack() as closing:
        ports = Ports(shared_listeners(configs), configs.workers, http_ports(configs))
        closing.callback(ports.close)
        data_dir = configs.settings.broker.data_dir
        sealer = open_sealer(configs.settings.encryption, data_dir)
        folder = WorkersFolder(data_dir, configs.workers.count, adopts=adopts, sealer=sealer)
        closing.callback(folder.close)
        workers = [
            Worker(
                number,
                worker_configs(configs, number, [each.port for each in ports.own_addresses(number)]),
                logged,
                ports.descriptors(number),
                folder.keeper,
            )
            for number in range(configs.workers.count)
        ]
        stopping = _stop_on_signal(workers)
        try:
            await _start_all(workers, stopping)
            if not stopping.is_set():
                _say_ready(_facts(ports, workers, configs), ready_file, logged.style)
                await _run_workers(workers, stopping)
        finally:
            ports.close()
            await asyncio.gather(*(worker.stop() for worker in workers))


def _stop_on_signal(workers: list[Worker]) -> asyncio.Event:
    stopping = asyncio.Event()

    def on_signal() -> None:
        if stopping.is_set():
            # Asked twice: what was acknowledged is safe, and the next start will check the rest.
            for worker in workers:
                worker.kill()
        stopping.set()
        for worker in workers:
            worker.ask_to_stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)

    def reload() -> None:
        for worker in workers:
            worker.reload()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)
    return stopping


async def _start_all(workers: list[Worker], stopping: asyncio.Event) -> None:
    try:
        await asyncio.gather(*(worker.start() for worker in workers))
    except OttlaError:
        if not stopping.is_set():
            raise


async def _run_workers(workers: list[Worker], stopping: asyncio.Event) -> None:
    watching = [asyncio.create_task(worker.keep_running()) for worker in workers]
    await stopping.wait()
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)


def _facts(ports: Ports, workers: list[Worker], configs: Configs) -> dict[str, Any]:
    shared = ports.shared_addresses
    return {
        "kafka": str(shared[0]),
        "listeners": [f"{each.protocol}://{at}" for each, at in zip(ports.listeners, shared, strict=True)],
        "http": workers[0].facts["http"],
        "schema_registry": workers[0].facts["schema_registry"],
        "data_dir": str(configs.settings.broker.data_dir.resolve()),
        "pid": os.getpid(),
        "workers": [{name: worker.facts[name] for name in ("kafka", "http", "pid")} for worker in workers],
    }


def _say_ready(facts: dict[str, Any], ready_file: Path | None, style: str) -> None:
    web = f", HTTP on {facts['http']}" if facts["http"] else ""
    count = len(facts["workers"])
    workers = f"{count} worker{'' if count == 1 else 's'}"
    message = f"ottla is ready: {workers}, Kafka on {facts['kafka']}{web}, data in {facts['data_dir']}"
    announce(message, lambda: facts, ready_file, style)
