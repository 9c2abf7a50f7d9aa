"""`ottla queue serve`: queues over HTTP, without a broker."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.server.logs import set_up_logging
from ottla.core.hosts import is_loopback


@click.command(
    epilog="""\b
Examples:
  ottla queue serve --data-dir queues
  ottla queue serve --bind 127.0.0.1:9093 --no-auth
""",
)
@click.option(
    "-c",
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Read this TOML file; else v-queue-server.toml if it exists.",
)
@click.option("-b", "--bind", "bind_address", metavar="HOST:PORT", help="Where to listen [default: 127.0.0.1:9093].")
@click.option(
    "-d", "--data-dir", "data_directory", type=click.Path(path_type=Path), help="The folder [default: queues]."
)
@click.option("-l", "--log-level", type=click.Choice(["debug", "info", "warn", "warning", "error"]))
@click.option("--keys", "key_file", type=click.Path(path_type=Path), help="Encryption key file.")
@click.option("--no-auth", is_flag=True, help="Disable authentication, whatever the file says.")
def serve(  # noqa: PLR0913
    config_file: Path | None,
    bind_address: str | None,
    data_directory: Path | None,
    log_level: str | None,
    key_file: Path | None,
    *,
    no_auth: bool,
) -> None:
    """Serve queues over HTTP, without a broker."""
    from ottla.http.queues.config import load_queue_server_config

    given = {
        "bind_address": bind_address,
        "data_directory": data_directory,
        "log_level": log_level,
        "key_file": key_file,
        "auth_enabled": False if no_auth else None,
    }
    config = load_queue_server_config(config_file, {key: value for key, value in given.items() if value is not None})
    set_up_logging("warning" if config.log_level == "warn" else config.log_level, "text")
    host = config.address[0]
    if not config.needs_password and not is_loopback(host):
        click.echo(
            f"ottla: listening on {host} without authentication: anyone who can reach it can read and write", err=True
        )

    from ottla.http.queues.server import serve_queues

    folder = config.data_directory.resolve()
    serve_queues(config, lambda address: click.echo(f"ottla serves queues: HTTP on {address}, data in {folder}"))
