"""Announces readiness and addresses: as a log line, and as a file for programs."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.broker import Broker
    from ottla.http.server import HttpServer
    from ottla.net.port import Port

_READY_MODE: Final = 0o644
"""The ready file: it contains the addresses, for processes that wait for the broker."""


def say_ready(broker: Broker, http: HttpServer | None, *, ready_file: Path | None, style: str = "text") -> None:
    is_https = http is not None and http.url.startswith("https")
    web = f", {'HTTPS' if is_https else 'HTTP'} on {http.address}" if http else ""
    kafka = ", ".join(_shown(port) for port in broker.listener.ports)
    message = f"ottla is ready: Kafka on {kafka}{web}, data in {broker.data_dir.path.resolve()}"
    announce(message, partial(ready_facts, broker, http), ready_file, style)


def announce(message: str, facts: Callable[[], dict[str, Any]], ready_file: Path | None, style: str) -> None:
    """Print the message, as JSON with the addresses if the log is JSON, and write the ready file."""
    if style == "json":
        import msgspec

        at_ms = time.time_ns() // 1_000_000
        entry = {"at_ms": at_ms, "level": "info", "logger": "ottla.serve", "message": message, **facts()}
        message = msgspec.json.encode(entry).decode()
    click.echo(message)
    sys.stdout.flush()
    if ready_file is not None:
        write_ready_file(ready_file, facts())


def ready_facts(broker: Broker, http: HttpServer | None) -> dict[str, Any]:
    return {
        "kafka": str(broker.address),
        "listeners": [f"{port.config.protocol}://{port.address}" for port in broker.listener.ports],
        "http": str(http.address) if http else None,
        "schema_registry": http.schema_registry_url if http else None,
        "data_dir": str(broker.data_dir.path.resolve()),
        "pid": os.getpid(),
    }


def write_ready_file(file: Path, facts: dict[str, Any]) -> None:
    """Write atomically: a reader finds the whole file or none.

    The name is random and the file new: a symbolic link in a shared folder must not be followed.
    """
    import tempfile

    import msgspec

    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(msgspec.json.encode(facts))
        temporary.chmod(_READY_MODE)
        temporary.replace(file)
    except BaseException:
        temporary.unlink()
        raise


def _shown(port: Port) -> str:
    plain = port.config.protocol == "PLAINTEXT"
    return str(port.address) if plain else f"{port.config.protocol}://{port.address}"
