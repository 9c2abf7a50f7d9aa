"""Connection options shared by all commands, and the client created from them."""

from __future__ import annotations

import os
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from msgspec import Struct

from ottla.cli.profiles import DEFAULT_PROFILE, Profile, chosen, merged, profiles
from ottla.client.security import Security
from ottla.core.config_sources import BROKER_VARIABLE, PASSWORD_VARIABLE
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from click.shell_completion import CompletionItem

    from ottla.client.client import Client

DEFAULT_SERVERS: Final = "127.0.0.1:9092"

T = TypeVar("T")
Decorated = TypeVar("Decorated", bound="Callable[..., Any]")

_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def _complete_broker(context: click.Context, _: click.Parameter, begun: str) -> Iterable[CompletionItem]:
    from click.shell_completion import CompletionItem

    known = profiles(context.params.get("config_file"))
    return [CompletionItem(name, help=profile.servers) for name, profile in known.items() if name.startswith(begun)]


_OPTIONS: Final = (
    click.option(
        "-b",
        "--broker",
        "servers",
        metavar="NAME|HOST:PORT[,…]",
        envvar=BROKER_VARIABLE,
        shell_complete=_complete_broker,
        show_envvar=True,
        help="Any broker of the cluster, Ottla's or Kafka's, or one that the configuration file names. "
        f"[default: [brokers.{DEFAULT_PROFILE}] of the file, or {DEFAULT_SERVERS}]",
    ),
    click.option("--tls", is_flag=True, help="Encrypt the connection."),
    click.option("--ca-file", metavar="FILE", help="CA certificates to trust, in PEM; implies --tls."),
    click.option("--cert-file", metavar="FILE", help="Client certificate, in PEM; implies --tls."),
    click.option("--key-file", metavar="FILE", help="Private key of --cert-file, if in a separate file."),
    click.option("--sasl", type=click.Choice(_MECHANISMS, case_sensitive=False), help="SASL mechanism."),
    click.option(
        "--user", metavar="NAME", help=f"User name; the password is prompted for, or taken from ${PASSWORD_VARIABLE}."
    ),
)
with_config_option: Final = click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The configuration file [default: $OTTLA_CONFIG, or ottla.toml if it exists].",
)
_NAMES: Final = ("servers", "tls", "ca_file", "cert_file", "key_file", "sasl", "user")
_FILES: Final = ("ca_file", "cert_file", "key_file")


class Reach(Struct, frozen=True):
    """A broker and how to connect to it."""

    profile: Profile
    is_chosen: bool = True
    """Whether it was given explicitly, or is the default address."""

    @property
    def servers(self) -> str:
        return self.profile.servers

    def client(self, **options: Any) -> Client:
        from ottla.client.client import Client

        return Client(self.servers, security=self.security(), **{"client_id": "ottla-cli"} | options)

    def run(self, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Run this with a client of the broker."""
        import asyncio  # only now, as it takes long; uvloop would take longer than it saves in a few requests

        async def connected() -> T:
            async with self.client() as client:
                return await work(client)

        return asyncio.run(connected())

    def security(self) -> Security | None:
        given = self.profile
        tls = given.tls or given.ca_file is not None or given.cert_file is not None
        if not (tls or given.key_file or given.sasl or given.user):
            return None
        return Security(
            tls=tls,
            ca_file=given.ca_file,
            cert_file=given.cert_file,
            key_file=given.key_file,
            mechanism=given.sasl,
            username=given.user,
            password=given.password,
        )


def with_broker_options(command: Callable[..., T]) -> Callable[..., T]:
    """Give a command the connection options and --config, and pass it what they say as `reach`."""

    @wraps(command)
    def connected(*arguments: object, **options: object) -> T:
        return command(*arguments, reach=reach_from(options), **options)

    return with_broker_choice(with_config_option(connected))


def with_broker_choice(command: Decorated) -> Decorated:
    """The connection options alone, for a command that has --config already and calls `reach_from`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def reach_from(options: dict[str, Any]) -> Reach:
    """Take the connection options out of a command's options, and prompt for a password if it is missing."""
    given = {name: options.pop(name) for name in _NAMES}
    known = profiles(options.pop("config_file"))
    name = given.pop("servers")
    is_chosen = name is not None or DEFAULT_PROFILE in known
    if name is None:
        name = DEFAULT_PROFILE if DEFAULT_PROFILE in known else DEFAULT_SERVERS
    if not name.strip():
        raise ConfigError("--broker: expected host:port")
    profile = merged(chosen(name, known), given)
    for each in _FILES:
        path = getattr(profile, each)
        if path is not None and not Path(path).is_file():
            raise ConfigError(f"--{each.replace('_', '-')}: there is no file {path}")
    return Reach(merged(profile, {"password": _password(profile)}), is_chosen)


def _password(profile: Profile) -> str | None:
    if profile.user is None:
        return None
    known = os.environ.get(PASSWORD_VARIABLE) or profile.password
    return known or click.prompt(f"Password of {profile.user}", hide_input=True, err=True)
