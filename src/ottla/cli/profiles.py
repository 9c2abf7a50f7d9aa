"""Brokers by name: the tables `[brokers.NAME]` of the configuration file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from ottla.cli.settings import find_config_file
from ottla.core.closest import closest
from ottla.core.config import load_named
from ottla.core.config_sources import BROKERS_TABLE, printable
from ottla.core.errors import ConfigError
from ottla.core.structs import repr_without

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DEFAULT_PROFILE: Final = "default"
_FILES: Final = ("ca_file", "cert_file", "key_file")
_PARTS_OF_ADDRESSES: Final = frozenset(".:,[]")


class Profile(Struct, frozen=True, kw_only=True):
    servers: str = ""
    """Any brokers of the cluster, as host:port, with commas between them."""
    tls: bool = False
    """Encrypt the connection."""
    ca_file: str | None = None
    """Trust the certificates of this PEM file, which is looked for beside the configuration file; implies tls."""
    cert_file: str | None = None
    """This client's own certificate, in PEM; implies tls."""
    key_file: str | None = None
    """The key of cert_file, if it is not in the same file."""
    sasl: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    """How to log in."""
    user: str | None = None
    """Whom to log in as."""
    password: str | None = None
    """The password. By default $OTTLA_PASSWORD, or a prompt."""
    schema_registry: str | None = None
    """URL of the schema registry; by default that of the broker, at port 8080."""

    def __repr__(self) -> str:
        return repr_without(self, "password")


def profiles(config_file: Path | None) -> dict[str, Profile]:
    """All profiles, with file paths resolved."""
    file = find_config_file(config_file, os.environ)
    if file is None:
        return {}
    found = load_named(Profile, BROKERS_TABLE, file)
    for name, profile in found.items():
        if not _PARTS_OF_ADDRESSES.isdisjoint(name):
            raise ConfigError(f"{printable(file)}: {name!r} is not a valid broker name: it looks like an address")
        if not profile.servers:
            raise ConfigError(f'{printable(file)}: [brokers.{name}] has no servers; write servers = "host:9092"')
    return {name: _with_files_beside(profile, file.parent) for name, profile in found.items()}


def chosen(given: str, known: Mapping[str, Profile]) -> Profile:
    """Resolve a broker by its name, or by its address."""
    if given in known:
        return known[given]
    if _PARTS_OF_ADDRESSES.isdisjoint(given) and (close := closest(given, known)):
        raise ConfigError(
            f"--broker: there is no [brokers.{given}] in the configuration file; did you mean {close}? "
            f"If it is a host, write {given}:9092"
        )
    return Profile(servers=given)


def merged(profile: Profile, given: Mapping[str, Any]) -> Profile:
    """The profile, overridden by options of the command line."""
    return replace(
        profile, **{name: value for name, value in given.items() if name in Profile.__struct_fields__ and value}
    )


def _with_files_beside(profile: Profile, folder: Path) -> Profile:
    return merged(
        profile, {name: str(folder / value) for name in _FILES if (value := getattr(profile, name)) is not None}
    )
