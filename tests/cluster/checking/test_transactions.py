"""Transactions across nodes under faults: each is visible as a whole or not at all, together with its offsets.

The long version is `make cluster-test`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from .clocks import NoCompiler
from .processes import ON_SLOW_LINKS, Cluster, Processes, Topology
from .slow_links import SlowLinks
from .stories import Stories
from .story_checker import broken_promises
from .transacting import Scene, read_ending, transacting
from .transaction_faults import TransactionFaults
from .workers import ConfluentWorker, OttlaWorker, PausingWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ottla.cluster.server import ZooKeeperServer

    from .transacting import Worker

IS_LONG = bool(os.environ.get("LONG_CLUSTER_TEST"))
MIXED: list[type[Worker]] = [ConfluentWorker, ConfluentWorker, OttlaWorker]
SHORT = [TransactionFaults.kill_coordinator]
LONG = [
    TransactionFaults.kill_leader,
    TransactionFaults.kill_controller,
    TransactionFaults.freeze_coordinator,
    TransactionFaults.freeze_leader,
    TransactionFaults.kill_coordinator_of_frozen_followers,
    TransactionFaults.kill_in_turn,
    TransactionFaults.restart_in_turn,
    TransactionFaults.kill_all,
    TransactionFaults.wipe_coordinator,
    TransactionFaults.restart_zookeeper,
]
IN_A_NETWORK = [
    TransactionFaults.cut_coordinator_from_followers,
    TransactionFaults.cut_coordinator_one_way,
    TransactionFaults.cut_coordinator_from_zookeeper,
    TransactionFaults.cut_coordinator_from_leader,
]


def found_wrong(
    cluster: Cluster,
    folder: Path,
    kinds: list[type[Worker]],
    happens: Callable[[TransactionFaults], None],
    timeout_s: float = 30.0,
) -> list[str]:
    stories = Stories(folder / "stories.jsonl")
    scene = Scene(cluster.processes.servers, happens.__name__, stories)
    scene.prepare()
    workers = [kind(scene, f"{happens.__name__}-{number}", number) for number, kind in enumerate(kinds)]
    faults = TransactionFaults(cluster, scene, workers)
    try:
        transacting(scene, workers, lambda: happens(faults))
        ending = read_ending(scene, [each.name for each in workers], timeout_s)
        return broken_promises(stories.told, stories.reads, ending)
    finally:
        stories.close()


@pytest.fixture(scope="module")
def cluster(zookeeper_server: ZooKeeperServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("transactions")
    with Processes(folder, f"{zookeeper_server.address}/{folder.name}-{os.getpid()}") as running:
        yield Cluster(running, zookeeper_server)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("happens", [*SHORT, *(LONG if IS_LONG else [])], ids=lambda fault: fault.__name__)
def test_a_transaction_is_atomic_under_faults(
    cluster: Cluster, tmp_path: Path, happens: Callable[[TransactionFaults], None]
) -> None:
    assert found_wrong(cluster, tmp_path, MIXED, happens) == []


@pytest.mark.timeout(300)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
@pytest.mark.parametrize("happens", IN_A_NETWORK, ids=lambda fault: fault.__name__)
def test_nothing_is_lost_when_the_network_fails(
    networked: Cluster, tmp_path: Path, happens: Callable[[TransactionFaults], None]
) -> None:
    assert found_wrong(networked, tmp_path, MIXED, happens) == []


@pytest.mark.timeout(300)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
def test_nothing_is_lost_when_links_are_slow(zookeeper_server: ZooKeeperServer, tmp_path: Path) -> None:
    with SlowLinks() as links:
        zookeeper = f"127.0.0.1:{links.to('127.0.0.1', zookeeper_server.port)}/slow-transactions-{os.getpid()}"
        topology = Topology(links=links, settings=ON_SLOW_LINKS)
        with Processes(tmp_path / "cluster", zookeeper, topology=topology) as processes:
            cluster = Cluster(processes, zookeeper_server)
            assert found_wrong(cluster, tmp_path, MIXED, TransactionFaults.slow_all_links) == []


@pytest.mark.timeout(300)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
def test_nothing_is_lost_when_clocks_jump_by_an_hour(zookeeper_server: ZooKeeperServer, tmp_path: Path) -> None:
    zookeeper = f"{zookeeper_server.address}/clocks-of-transactions-{os.getpid()}"
    own = Topology(has_own_clocks=True)
    try:
        with Processes(tmp_path / "cluster", zookeeper, topology=own) as processes:
            cluster = Cluster(processes, zookeeper_server)
            assert found_wrong(cluster, tmp_path, MIXED, TransactionFaults.jump_clocks) == []
    except NoCompiler as missing:
        pytest.skip(str(missing))


@pytest.mark.timeout(300)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
def test_a_coordinator_that_answers_before_replication_is_caught(
    zookeeper_server: ZooKeeperServer, tmp_path: Path
) -> None:
    # Whether a commit is under way when its coordinator dies depends on the machine: a few attempts.
    assert any(_is_caught(zookeeper_server, tmp_path / str(attempt)) for attempt in range(4))


def _is_caught(zookeeper_server: ZooKeeperServer, folder: Path) -> bool:
    folder.mkdir()
    zookeeper = f"{zookeeper_server.address}/rash-{os.getpid()}-{folder.name}"
    # One coordinator for all, so that several transactions are at the same point when it dies.
    alone = Topology(settings=("transactions.state_topic_partitions=1",))
    rash = "tests.cluster.checking.rash"
    with Processes(folder / "cluster", zookeeper, module=rash, topology=alone) as processes:
        happens = TransactionFaults.kill_coordinator_of_frozen_followers
        wrong = found_wrong(Cluster(processes, zookeeper_server), folder, [PausingWorker] * 6, happens)
    return any(each.startswith("lost") for each in wrong)


@pytest.mark.timeout(300)
def test_a_coordinator_that_omits_an_end_marker_is_caught(zookeeper_server: ZooKeeperServer, tmp_path: Path) -> None:
    zookeeper = f"{zookeeper_server.address}/forgetful-{os.getpid()}"
    with Processes(tmp_path / "cluster", zookeeper, module="tests.cluster.checking.forgetful") as processes:
        cluster = Cluster(processes, zookeeper_server)
        wrong = found_wrong(cluster, tmp_path, MIXED, TransactionFaults.nothing, timeout_s=2.0)

    assert any(each.startswith(("lost", "torn", "seen")) for each in wrong)
