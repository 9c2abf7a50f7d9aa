"""Faults under load, on real processes and a real ZooKeeper: nothing acknowledged is lost, repeated or reordered.

The long version is `make cluster-test`.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.faults.mounting import CannotMount, tmpfs

from .clocks import NoCompiler
from .disks import BROKEN, DISKS, LAST_DISKS
from .faults import Faults
from .load import PlainWriter
from .moves import FACTOR, move_redirect_and_cancel_under_kills
from .pauses import PAUSES
from .processes import ON_SLOW_LINKS, Cluster, Processes, Topology
from .slow_links import SlowLinks
from .trying import Shape, found_wrong

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.cluster.server import ZooKeeperServer

    from .trying import Happens

IS_LONG = bool(os.environ.get("LONG_CLUSTER_TEST"))
SHORT = [Faults.kill_leader, Faults.kill_leader_of_frozen_followers]
LONG = [
    Faults.freeze_leader,
    Faults.restart_in_turn,
    Faults.kill_in_turn,
    Faults.wipe_follower,
    Faults.damage_follower,
    Faults.kill_all,
    Faults.restart_zookeeper,
    *PAUSES,
    *DISKS,
]
IN_A_NETWORK = [
    Faults.cut_leader_from_followers,
    Faults.cut_one_way,
    Faults.cut_followers_one_way,
    Faults.cut_one_follower_one_way,
    Faults.cut_in_a_ring,
    Faults.cut_leader_from_zookeeper,
    Faults.cut_controller_from_zookeeper,
]


@pytest.fixture(scope="module")
def cluster(zookeeper_server: ZooKeeperServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with Processes(folder, f"{zookeeper_server.address}/{folder.name}") as running:
        yield Cluster(running, zookeeper_server)


@pytest.fixture(scope="module")
def on_failing_disks(zookeeper_server: ZooKeeperServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("failing")
    zookeeper = f"{zookeeper_server.address}/{folder.name}"
    with Processes(folder, zookeeper, module="tests.cluster.checking.failing_disk") as running:
        yield Cluster(running, zookeeper_server)


@pytest.fixture(scope="module")
def on_small_disks(zookeeper_server: ZooKeeperServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("small")
    processes = Processes(folder, f"{zookeeper_server.address}/{folder.name}")
    with ExitStack() as stack:
        try:
            for node in processes.nodes.values():
                stack.enter_context(tmpfs(node.folder, "24m"))
        except CannotMount as missing:
            pytest.skip(str(missing))
        yield Cluster(stack.enter_context(processes), zookeeper_server)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("happens", [*SHORT, *(LONG if IS_LONG else [])], ids=lambda fault: fault.__name__)
def test_acknowledged_records_are_stored_once_and_in_order_under_faults(
    cluster: Cluster, tmp_path: Path, happens: Happens
) -> None:
    assert found_wrong(cluster, tmp_path, happens) == []


@pytest.mark.timeout(300)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
@pytest.mark.parametrize("happens", IN_A_NETWORK, ids=lambda fault: fault.__name__)
def test_nothing_is_lost_when_the_network_fails(networked: Cluster, tmp_path: Path, happens: Happens) -> None:
    assert found_wrong(networked, tmp_path, happens) == []


@pytest.mark.timeout(300)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
@pytest.mark.parametrize("happens", LAST_DISKS, ids=lambda fault: fault.__name__)
def test_nothing_is_lost_when_the_last_in_sync_replica_starts_with_a_wrong_disk(
    cluster: Cluster, tmp_path: Path, happens: Happens
) -> None:
    assert found_wrong(cluster, tmp_path, happens, Shape(min_insync=1)) == []


@pytest.mark.timeout(300)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
@pytest.mark.parametrize("happens", BROKEN, ids=lambda fault: fault.__name__)
def test_nothing_is_lost_when_a_disk_fails_for_one_partition(
    on_failing_disks: Cluster, tmp_path: Path, happens: Happens
) -> None:
    shape = Shape(partitions=6, configs={"flush.messages": "1"})
    assert found_wrong(on_failing_disks, tmp_path, happens, shape) == []


@pytest.mark.timeout(300)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
def test_nothing_is_lost_when_nodes_are_killed_during_reassignments(cluster: Cluster, tmp_path: Path) -> None:
    shape = Shape(factor=FACTOR, min_insync=1)
    assert found_wrong(cluster, tmp_path, move_redirect_and_cancel_under_kills, shape) == []


@pytest.mark.timeout(300)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
def test_nothing_is_lost_when_the_disk_of_a_follower_is_full(on_small_disks: Cluster, tmp_path: Path) -> None:
    assert found_wrong(on_small_disks, tmp_path, Faults.fill_disk) == []


@pytest.mark.timeout(300)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
def test_nothing_is_lost_when_links_are_slow(zookeeper_server: ZooKeeperServer, tmp_path: Path) -> None:
    with SlowLinks() as links:
        zookeeper = f"127.0.0.1:{links.to('127.0.0.1', zookeeper_server.port)}/slow-{os.getpid()}"
        topology = Topology(links=links, settings=ON_SLOW_LINKS)
        with Processes(tmp_path / "cluster", zookeeper, topology=topology) as processes:
            cluster = Cluster(processes, zookeeper_server)
            assert found_wrong(cluster, tmp_path, Faults.slow_all_links) == []


@pytest.mark.timeout(300)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
def test_nothing_is_lost_when_clocks_jump_by_an_hour(zookeeper_server: ZooKeeperServer, tmp_path: Path) -> None:
    zookeeper = f"{zookeeper_server.address}/clocks-{os.getpid()}"
    # After a clock jump, all but the newest segment would exceed retention.
    often = Topology(has_own_clocks=True, settings=("broker.retention_check_interval_ms=200",))
    young = {"retention.ms": "1800000", "internal.segment.bytes": "16384"}
    try:
        with Processes(tmp_path / "cluster", zookeeper, topology=often) as processes:
            cluster = Cluster(processes, zookeeper_server)
            assert found_wrong(cluster, tmp_path, Faults.jump_clocks, Shape(configs=young)) == []
            segments = list((tmp_path / "cluster").glob("node-1/jump_clocks-0/*.log"))
            assert len(segments) > 1
    except NoCompiler as missing:
        pytest.skip(str(missing))


@pytest.mark.timeout(300)
def test_a_leader_that_acknowledges_before_replication_is_caught(
    zookeeper_server: ZooKeeperServer, tmp_path: Path
) -> None:
    zookeeper = f"{zookeeper_server.address}/hasty-{os.getpid()}"
    with Processes(tmp_path / "cluster", zookeeper, module="tests.cluster.checking.hasty") as processes:
        cluster = Cluster(processes, zookeeper_server)
        wrong = found_wrong(cluster, tmp_path, Faults.kill_leader_of_frozen_followers, kinds=[PlainWriter])

    assert any(each.startswith("lost") for each in wrong)
