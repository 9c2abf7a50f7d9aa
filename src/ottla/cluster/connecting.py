"""Connects to the catalog of a cluster and loads a copy of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.cluster.catalog import SharedCatalog, create_catalog
from ottla.cluster.exposed_shards import EXPOSED, prepare
from ottla.cluster.mirror import Mirror
from ottla.cluster.nodes import FOLDERS, LEAVES, PARTITIONS
from ottla.cluster.operations import Disconnected
from ottla.cluster.retrying import retried
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from ottla.cluster.config import ClusterConfig
    from ottla.cluster.store import Store


@dataclass(frozen=True, slots=True)
class Connected:
    store: Store
    mirror: Mirror
    catalog: SharedCatalog

    def close(self) -> None:
        self.store.close()


def connect(config: ClusterConfig, given: Store | None = None) -> Connected:
    """Connect to ZooKeeper, or to the given store, and load everything. An empty store is initialised.

    Raises ConfigError on failure.
    """
    store = given or _zookeeper(config)
    store.open()
    try:
        cluster_id = retried(store, lambda: create_catalog(store))
        retried(store, lambda: prepare(store))
        mirror = Mirror(store, (*FOLDERS, EXPOSED), LEAVES, PARTITIONS)
        catalog = SharedCatalog(store, mirror, cluster_id)
        mirror.fill(config.connect_timeout_ms / 1000)
    except Disconnected as lost:
        store.close()
        where = "ZooKeeper" if given is None else "the supervisor"
        raise ConfigError(f"could not load the catalog from {where}: {lost}") from lost
    except BaseException:
        store.close()
        raise
    return Connected(store, mirror, catalog)


def _zookeeper(config: ClusterConfig) -> Store:
    from ottla.cluster.zookeeper import ZooKeeper  # kazoo is an optional dependency

    return ZooKeeper(config)
