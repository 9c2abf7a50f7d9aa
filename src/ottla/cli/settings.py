"""Shared by commands that read settings: sections, file, flags."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ottla.core.config import Flag, Settings, load
from ottla.core.config_sources import CONFIG_FILE_VARIABLE
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DEFAULT_CONFIG_FILE: Final = Path("ottla.toml")

Decorated = TypeVar("Decorated", bound="Callable[..., Any]")


def sections() -> dict[str, type[Any]]:
    """Every section of the configuration and the class that describes it."""
    from ottla.broker.config import BrokerConfig
    from ottla.broker.tracing_config import TracingConfig
    from ottla.cli.lake_config import LakeConfig
    from ottla.cluster.builtin.config import WorkersConfig
    from ottla.cluster.config import ClusterConfig
    from ottla.cluster.replication.config import ReplicationConfig
    from ottla.core.keys import EncryptionConfig
    from ottla.dmqp.config import DmqpConfig
    from ottla.groups.config import GroupConfig
    from ottla.http.config import HttpConfig
    from ottla.http.queues.config import QueuesConfig
    from ottla.http.registry_config import SchemaRegistryConfig
    from ottla.net.config import NetConfig
    from ottla.net.security_config import SecurityConfig
    from ottla.share.config import ShareConfig
    from ottla.storage.config import LogConfig
    from ottla.transactions.config import TransactionConfig

    return {
        "broker": BrokerConfig,
        "net": NetConfig,
        "security": SecurityConfig,
        "log": LogConfig,
        "groups": GroupConfig,
        "transactions": TransactionConfig,
        "share": ShareConfig,
        "encryption": EncryptionConfig,
        "http": HttpConfig,
        "queues": QueuesConfig,
        "schema_registry": SchemaRegistryConfig,
        "lake": LakeConfig,
        "dmqp": DmqpConfig,
        "tracing": TracingConfig,
        "cluster": ClusterConfig,
        "replication": ReplicationConfig,
        "workers": WorkersConfig,
    }


def with_settings_options(command: Decorated) -> Decorated:
    """Give a command `--config` and `--set`, which it hands to `load_settings`."""
    assign = click.option(
        "--set",
        "assignments",
        metavar="SECTION.KEY=VALUE",
        multiple=True,
        help="Set a value; may be repeated.",
    )
    choose_file = click.option(
        "--config",
        "config_file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help=f"Read this TOML file; else ${CONFIG_FILE_VARIABLE}, else {DEFAULT_CONFIG_FILE} if it exists.",
    )
    return choose_file(assign(command))


def load_settings(
    config_file: Path | None, assignments: Sequence[str] = (), flags: Mapping[str, Flag] | None = None
) -> Settings:
    """The settings of this process: its flags, its environment, its file."""
    return load(
        sections(),
        file=find_config_file(config_file, os.environ),
        environment=os.environ,
        command_line={**_flags(assignments), **(flags or {})},
    )


def find_config_file(given: Path | None, environment: Mapping[str, str]) -> Path | None:
    if given is not None:
        return given
    if from_environment := environment.get(CONFIG_FILE_VARIABLE):
        return Path(from_environment)
    # A link that leads nowhere counts as a file, so that it is an error and not silence.
    return DEFAULT_CONFIG_FILE if os.path.lexists(DEFAULT_CONFIG_FILE) else None


def _flags(assignments: Sequence[str]) -> dict[str, Flag]:
    flags = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            # Not echoed: it may well be a password.
            raise ConfigError("--set: expected SECTION.KEY=VALUE, but one has no =")
        flags[name.strip()] = Flag("--set", value)
    return flags
