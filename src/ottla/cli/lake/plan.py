"""How the writer process of a broker connects, and where its tables are. Needs no pyiceberg."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from msgspec import Struct

from ottla.broker.topology import ANY_ADDRESS
from ottla.cli.lake_config import catalog_properties
from ottla.cli.profiles import Profile, chosen, profiles
from ottla.core.errors import ConfigError
from ottla.core.ids import Address

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.broker.broker import Broker
    from ottla.cli.lake_config import LakeConfig
    from ottla.cli.workers.plan import Logging

_REGISTRY_PATH = "/schema-registry"


class WriterPlan(Struct, frozen=True, kw_only=True):
    """Sent to the process on its standard input: command lines are visible to other users.

    Lines of JSON follow: by topic, the configs of the tables that it writes.
    """

    profile: Profile
    folder: Path
    warehouse: str
    catalog: dict[str, str]
    namespace: str
    registry: str
    logging: Logging


def writer_plan(broker: Broker, config: LakeConfig, config_file: Path | None, logging: Logging) -> WriterPlan:
    """Raises ConfigError if no process can be started with these settings."""
    if any(importlib.util.find_spec(each) is None for each in ("pyiceberg", "pyarrow")):
        raise ConfigError("tables need the packages pyiceberg and pyarrow; run: pip install 'ottla[lake]'")
    is_shared = broker.inherited is not None  # workers are on one machine
    if broker.cluster is not None and not is_shared and not config.catalog:
        raise ConfigError(
            "nodes of a cluster need a shared catalog; set lake.catalog and lake.warehouse, or lake.writer = false"
        )
    return WriterPlan(
        profile=_profile(broker, config, config_file),
        folder=broker.lake_folder.absolute(),
        warehouse=config.warehouse,
        catalog=catalog_properties(config.catalog, "lake.catalog"),
        namespace=config.namespace,
        registry=config.registry or _registry(broker.http_address),
        logging=logging,
    )


def _profile(broker: Broker, config: LakeConfig, config_file: Path | None) -> Profile:
    if config.broker:
        return chosen(config.broker, profiles(config_file))
    for port in broker.listener.ports:
        if not (port.config.uses_tls or port.config.uses_sasl):
            return Profile(servers=str(_connectable(port.address)))
    raise ConfigError(
        "the broker has no PLAINTEXT listener; describe how to connect in a table [brokers.lake] of the configuration "
        'file, and set lake.broker = "lake"'
    )


def _registry(http: Address | None) -> str:
    return "" if http is None else f"http://{_connectable(http)}{_REGISTRY_PATH}"


def _connectable(address: Address) -> Address:
    return Address("127.0.0.1", address.port) if address.host in ANY_ADDRESS else address
