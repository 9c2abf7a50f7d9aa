"""How a command reaches a broker: the options all of them have, and the client they make."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ottla.client.security import Security
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ottla.client.client import Client
    from ottla.client.security import Mechanism

DEFAULT_SERVERS: Final = "127.0.0.1:9092"
SERVERS_VARIABLE: Final = "OTTLA_BROKER"
PASSWORD_VARIABLE: Final = "OTTLA_PASSWORD"  # noqa: S105 - where it is, not what it is

Decorated = TypeVar("Decorated", bound="Callable[..., Any]")
Result = TypeVar("Result")

_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

_OPTIONS: Final = (
    click.option(
        "-b",
        "--broker",
        "servers",
        metavar="HOST:PORT[,…]",
        envvar=SERVERS_VARIABLE,
        default=DEFAULT_SERVERS,
        show_default=True,
        show_envvar=True,
        help="Any broker of the cluster, Ottla's or Kafka's.",
    ),
    click.option("--tls", is_flag=True, help="Encrypt the connection."),
    click.option("--ca-file", metavar="FILE", help="Trust the certificates of this PEM file; implies --tls."),
    click.option("--sasl", type=click.Choice(_MECHANISMS, case_sensitive=False), help="Log in this way."),
    click.option(
        "--user", metavar="NAME", help=f"Whom to log in as; the password is asked for, or ${PASSWORD_VARIABLE}."
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    servers: str = DEFAULT_SERVERS
    tls: bool = False
    ca_file: str | None = None
    sasl: Mechanism | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def client(self) -> Client:
        from ottla.client.client import Client

        return Client(self.servers, client_id="ottla-cli", security=self.security())

    def security(self) -> Security | None:
        if not (self.tls or self.ca_file or self.sasl or self.user):
            return None
        return Security(
            tls=self.tls or self.ca_file is not None,
            ca_file=self.ca_file,
            mechanism=self.sasl,
            username=self.user,
            password=self.password,
        )


def with_broker_options(command: Decorated) -> Decorated:
    """Give a command the options of `reach_from`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def reach_from(options: dict[str, Any]) -> Reach:
    """Take the options of `with_broker_options` out of a command's own, and ask for what is missing."""
    chosen = {name: options.pop(name) for name in ("servers", "tls", "ca_file", "sasl", "user")}
    if chosen["ca_file"] is not None and not Path(chosen["ca_file"]).is_file():
        raise ConfigError(f"--ca-file: there is no file {chosen['ca_file']}")
    password = None
    if chosen["user"] is not None:
        password = os.environ.get(PASSWORD_VARIABLE) or click.prompt("Password", hide_input=True, err=True)
    return Reach(**chosen, password=password)


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end, or until interrupted, in the fastest loop there is."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)
