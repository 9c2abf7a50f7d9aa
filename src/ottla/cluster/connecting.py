"""From the address of ZooKeeper to a copy of all that it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.cluster.catalog import ZooKeeperCatalog, create_catalog
from ottla.cluster.mirror import Mirror
from ottla.cluster.nodes import FOLDERS, LEAVES, PARTITIONS
from ottla.cluster.operations import Disconnected
from ottla.cluster.zookeeper import ZooKeeper
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from ottla.cluster.config import ClusterConfig


@dataclass(frozen=True, slots=True)
class Connected:
    zookeeper: ZooKeeper
    mirror: Mirror
    catalog: ZooKeeperCatalog

    def close(self) -> None:
        self.zookeeper.close()


def connect(config: ClusterConfig) -> Connected:
    """Connect and read everything; a ZooKeeper that holds nothing is made ready. ConfigError if it cannot be."""
    zookeeper = ZooKeeper(config)
    zookeeper.open()
    try:
        cluster_id = create_catalog(zookeeper)
        mirror = Mirror(zookeeper, FOLDERS, LEAVES, PARTITIONS)
        catalog = ZooKeeperCatalog(zookeeper, mirror, cluster_id)
        mirror.fill(config.connect_timeout_ms / 1000)
    except Disconnected as lost:
        zookeeper.close()
        raise ConfigError(f"ZooKeeper at {config.zookeeper} cannot be used: {lost}") from lost
    except BaseException:
        zookeeper.close()
        raise
    return Connected(zookeeper, mirror, catalog)
