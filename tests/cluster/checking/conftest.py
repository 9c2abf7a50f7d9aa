"""Fixtures shared by several kinds of load."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.cluster.conftest import why_there_is_no_zookeeper

from ottla.cluster.server import ZooKeeperServer, free_port

from .networks import Network, NoNamespaces
from .processes import Cluster, Processes

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def networked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Each node in a separate network namespace, and a ZooKeeper that all can reach."""
    if reason := why_there_is_no_zookeeper():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("networked")
    with ExitStack() as stack:
        try:
            network = stack.enter_context(Network(count=3))
        except NoNamespaces as missing:
            pytest.skip(str(missing))
        zookeeper = ZooKeeperServer(folder / "zookeeper", free_port(), "clientPortAddress=0.0.0.0")
        zookeeper.start()
        stack.callback(zookeeper.stop)
        servers = f"{network.host}:{zookeeper.port}"
        yield Cluster(stack.enter_context(Processes(folder, servers, network=network)), zookeeper)
