"""Opens the catalog and the data folder: of a standalone broker, or of a member of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.administration import LocalAdministration
from ottla.broker.topology import StandaloneTopology
from ottla.storage.catalog.sqlite import SqliteCatalog
from ottla.storage.folder.data_dir import DataDir

if TYPE_CHECKING:
    from contextlib import ExitStack

    from ottla.broker.administration import Administration
    from ottla.broker.broker import Broker
    from ottla.broker.membership import CatalogFollower, PendingTopicCreations
    from ottla.broker.startup_wait import StartupWait
    from ottla.broker.topology import Topology
    from ottla.cluster.node import JoinedCluster
    from ottla.core.sealing import Sealer
    from ottla.storage.catalog.catalog import Catalog


class Opened(NamedTuple):
    catalog: Catalog
    is_new_catalog: bool
    data_dir: DataDir
    topology: Topology
    administration: Administration
    # Only in a cluster:
    cluster: JoinedCluster | None = None
    startup_wait: StartupWait | None = None
    soon: PendingTopicCreations | None = None
    following: CatalogFollower | None = None


def open_alone(broker: Broker, sealer: Sealer | None, undoing: ExitStack) -> Opened:
    folder = broker.config.data_dir
    data_dir = DataDir(folder, broker.clock, sealer=sealer)
    undoing.callback(data_dir.close)
    is_new_catalog = not (folder / "catalog.sqlite").exists()
    catalog = SqliteCatalog.open(folder, sealer, must_be_sealed=data_dir.has_sealed_catalog)
    undoing.callback(catalog.close)
    data_dir.note_sealed_catalog()
    return Opened(catalog, is_new_catalog, data_dir, StandaloneTopology(broker), LocalAdministration(broker))


def open_member(broker: Broker, sealer: Sealer | None, undoing: ExitStack) -> Opened:
    """Open the shared catalog of a cluster. Its topics are never adopted from a data folder."""
    from ottla.broker.membership import CatalogFollower, ClusterAdministration, Membership, PendingTopicCreations
    from ottla.broker.startup_wait import StartupWait
    from ottla.broker.topology import ClusterTopology

    inherited, config = broker.inherited, broker.config
    membership = Membership(broker.settings, None if inherited is None else inherited.catalog)
    undoing.callback(membership.close)
    catalog = membership.catalog
    data_dir = DataDir(
        config.data_dir, broker.clock, sealer=sealer, cluster_id=catalog.cluster_id, node_id=config.node_id
    )
    undoing.callback(data_dir.close)
    cluster = membership.cluster(data_dir)
    return Opened(
        catalog,
        is_new_catalog=False,
        data_dir=data_dir,
        topology=ClusterTopology(broker, cluster),
        administration=ClusterAdministration(broker, cluster, catalog),
        cluster=cluster,
        startup_wait=StartupWait(cluster, 1 if inherited is None else inherited.nodes),
        soon=PendingTopicCreations(broker),
        following=CatalogFollower(broker, catalog),
    )
