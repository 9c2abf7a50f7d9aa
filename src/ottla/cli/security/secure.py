"""`ottla secure`: set up a broker with TLS, a user and encryption at rest."""

from __future__ import annotations

import json
import re
import secrets
import shutil
from pathlib import Path
from typing import Final

import click

from ottla.cli.security import client_configs
from ottla.cli.summaries import CommandGroup
from ottla.core.errors import ConfigError, OttlaError
from ottla.core.keys import EncryptionConfig, first_ring, write_key_file

_ALWAYS: Final = ("localhost", "127.0.0.1", "::1")
_USER: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_PASSWORD_BYTES: Final = 24


@click.group(cls=CommandGroup)
def secure() -> None:
    """Set up TLS, users and encryption."""


@secure.command(
    epilog="""\b
Examples:
  ottla secure init secure
  ottla secure init /etc/ottla --data-dir /var/lib/ottla --host kafka.example --listen 0.0.0.0
  ottla serve --config secure/ottla.toml
""",
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--data-dir", type=click.Path(path_type=Path), default=Path("data"), show_default=True, help="The data folder."
)
@click.option("--host", "hosts", multiple=True, help="Host name or address of the broker; may be repeated.")
@click.option("--listen", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=9093, show_default=True)
@click.option("--user", default="admin", show_default=True, help="Name of the first user, a super user.")
@click.option("--days", type=click.IntRange(min=1), default=825, show_default=True, help="Validity of certificates.")
def init(  # noqa: PLR0913
    folder: Path, data_dir: Path, hosts: tuple[str, ...], listen: str, port: int, user: str, days: int
) -> None:
    """Create a CA, certificates, a user, an encryption key and a configuration in a new FOLDER.

    The authority is for development: its key lies beside everything else. For production, have certificates
    issued by one that you trust, and put them in the place of server.pem and server.key.
    """
    if not _USER.fullmatch(user):
        raise ConfigError("--user: use letters, digits, dots, hyphens and underscores")
    folder, data_dir = folder.resolve(), data_dir.resolve()
    if folder.is_relative_to(data_dir):
        raise ConfigError(f"{folder} lies in the data folder, whose key must not lie with the data")
    _make_folder(folder)
    names = list(dict.fromkeys([*hosts, *_ALWAYS]))
    key_file, config = folder / "keys", folder / "ottla.toml"
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    access = client_configs.Access(f"{names[0]}:{port}", folder / "ca.pem", user, password)
    try:
        _write_certificates(folder, names, user, days)
        write_key_file(key_file, first_ring(), is_new=True)
        _add_user(data_dir, key_file, user, password)
        config.write_text(_broker_config(folder, data_dir, (listen, port), access), "utf-8")
    except BaseException:
        # It was empty before, and a partial setup is useless.
        shutil.rmtree(folder)
        raise
    _tell(config, access)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(folder.iterdir()):
            raise ConfigError(f"{folder} is not empty; nothing in it is touched")
        folder.chmod(0o700)
    except OSError as refused:
        raise ConfigError(f"{folder} cannot be used: {refused.strerror}") from None


def _write_certificates(folder: Path, names: list[str], user: str, days: int) -> None:
    try:
        from ottla.cli.security.development_ca import DevelopmentCa
    except ImportError:
        raise OttlaError("certificates need the package cryptography: pip install 'ottla[security]'") from None

    authority = DevelopmentCa(folder, days)
    authority.issue_server(names)
    authority.issue_client(user)


def _add_user(data_dir: Path, key_file: Path, user: str, password: str) -> None:
    """Add a user to the data folder of a stopped broker."""
    from ottla.broker.config import BrokerConfig
    from ottla.broker.security.users import add_user_offline
    from ottla.broker.settings import Settings

    settings = Settings(broker=BrokerConfig(data_dir=data_dir), encryption=EncryptionConfig(key_file=key_file))
    add_user_offline(settings, user, password, [client_configs.MECHANISM])


def _broker_config(folder: Path, data_dir: Path, listen: tuple[str, int], access: client_configs.Access) -> str:
    host, port = listen
    return f"""# Made by `ottla secure init`; start with `ottla serve --config {folder / "ottla.toml"}`.

[broker]
data_dir = {_quoted(data_dir)}

[[net.listeners]]
protocol = "SASL_SSL"
host = {_quoted(host)}
port = {port}

[security]
cert_file = {_quoted(folder / "server.pem")}
key_file = {_quoted(folder / "server.key")}
client_ca_file = {_quoted(folder / "ca.pem")}
client_certificates = "requested"
mechanisms = ["{client_configs.MECHANISM}"]
acls = true
super_users = ["User:{access.user}"]

[encryption]
key_file = {_quoted(folder / "keys")}

# What commands such as `ottla topic list` connect to; they ask for the password, or take it from $OTTLA_PASSWORD.
[brokers.default]
servers = {_quoted(access.address)}
ca_file = {_quoted(access.ca_file)}
sasl = "{client_configs.MECHANISM}"
user = "{access.user}"
"""


def _quoted(value: object) -> str:
    # JSON's strings are TOML's.
    return json.dumps(str(value), ensure_ascii=False)


def _tell(config: Path, access: client_configs.Access) -> None:
    click.echo(f"Start the broker with: ottla serve --config {config}")
    click.echo(f"The password of {access.user} is shown only here and not stored.")
    for title, text in (
        ("The commands of ottla, which ask for the password", f"ottla topic list --config {config}"),
        ("librdkafka and the clients made with it", client_configs.librdkafka(access)),
        ("Java", client_configs.java(access)),
        ("Python", client_configs.python(access)),
    ):
        click.echo(f"\n# {title}\n{text}")
    click.echo(f"\nKeep a copy of {config.parent / 'keys'} elsewhere: without it the data is lost.")
