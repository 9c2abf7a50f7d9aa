"""The last in-sync replica of acknowledged records is never discarded: real processes, a real ZooKeeper."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ottla.client.blocking.admin import Admin
from ottla.core.errors import ErrorCode
from ottla.storage.folder.checkpoints import HIGH_WATERMARKS, read_offsets

from .copies import Copies
from .processes import Processes, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.cluster.server import ZooKeeperServer

IS_LONG = bool(os.environ.get("LONG_CLUSTER_TEST"))


@pytest.fixture
def processes(zookeeper_server: ZooKeeperServer, tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path / "cluster", f"{zookeeper_server.address}/copies-{os.getpid()}-{tmp_path.name}") as running:
        yield running


def _led_by_its_new_replica_alone(processes: Processes) -> Copies:
    """A reassignment from 1 to 2 and 3: 3 does not follow, 1 is dead, and 2 has acknowledged records that 1 lacks."""
    copies = Copies(processes, "moved", [1])
    copies.write()
    processes.nodes[3].freeze()
    assert copies.move([2, 3], by=1).error_code == 0
    copies.wait_for(2, leader=1, isr=[1, 2])
    processes.nodes[1].kill()
    copies.wait_for(2, leader=2, isr=[2])
    copies.write()
    return copies


@pytest.mark.timeout(120)
def test_a_cancelled_reassignment_does_not_lose_records_of_the_new_replica(processes: Processes) -> None:
    copies = _led_by_its_new_replica_alone(processes)

    refused = copies.move(None, by=2)
    processes.nodes[1].start()
    processes.nodes[1].wait_until_ready()
    processes.nodes[3].thaw()

    assert copies.lost() == set()
    assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "unclean leader election" in str(refused.error_message)
    copies.wait_for(2, leader=2, isr=[2, 3])


@pytest.mark.timeout(120)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
def test_a_redirected_reassignment_keeps_the_only_in_sync_replica_until_another_joins(processes: Processes) -> None:
    copies = _led_by_its_new_replica_alone(processes)

    assert copies.move([1], by=2).error_code == 0
    copies.write()
    processes.nodes[1].start()
    processes.nodes[1].wait_until_ready()
    copies.wait_for(2, leader=1, isr=[1])

    assert copies.lost() == set()
    assert copies.seen(2).replicas == (1,)


def _acknowledged_by_one_alone(processes: Processes, copies: Copies) -> None:
    """Nodes 2 and 3 die, node 1 acknowledges more records, then dies, too."""
    for number in (2, 3):
        processes.nodes[number].kill()
    copies.wait_for(1, leader=1, isr=[1])
    copies.write()
    processes.nodes[1].kill()


def _start_all(processes: Processes) -> None:
    for node in processes.nodes.values():
        if not node.is_running:
            node.start()
    for node in processes.nodes.values():
        node.wait_until_ready()


def _let_the_controller_decide(processes: Processes, name: str) -> None:
    """A topic created now gets a leader only after the controller has handled everything known before."""
    Copies(processes, name, [1])


def _check_nothing_leads_but_the_right_folder(processes: Processes, copies: Copies, right: Path) -> None:
    """While node 1 has another folder there is no leader, and nothing is truncated until it has the right one."""
    node = processes.nodes[1]
    _let_the_controller_decide(processes, "decided")
    assert copies.seen(2) == (-1, (1, 2, 3), (1,))
    assert "restarted with another data folder" in node.log_path.read_text()
    status = subprocess.run(
        [sys.executable, "-m", "ottla", "cluster", "status", "-b", processes.nodes[2].address],
        capture_output=True,
        text=True,
        check=False,
    )
    assert status.returncode == 1
    assert f"ottla cluster elect {copies.topic}:0 --unclean" in status.stderr

    node.stop()
    node.swap_disk(right)
    _start_all(processes)
    copies.wait_for(2, leader=1, isr=[1, 2, 3])
    assert copies.lost() == set()


@pytest.mark.timeout(180)
def test_the_last_in_sync_replica_does_not_lead_with_an_empty_folder(processes: Processes, tmp_path: Path) -> None:
    copies = Copies(processes, "wiped", [1, 2, 3])
    copies.write()
    _acknowledged_by_one_alone(processes, copies)

    processes.nodes[1].swap_disk(tmp_path / "right")
    _start_all(processes)

    _check_nothing_leads_but_the_right_folder(processes, copies, tmp_path / "right")


@pytest.mark.timeout(180)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
def test_the_last_in_sync_replica_does_not_lead_with_an_older_copy_of_its_folder(
    processes: Processes, tmp_path: Path
) -> None:
    copies, node = Copies(processes, "older", [1, 2, 3]), processes.nodes[1]
    copies.write()
    node.stop()
    shutil.copytree(node.folder, tmp_path / "other")
    node.start()
    node.wait_until_ready()
    copies.wait_for(2, leader=copies.seen(2).leader, isr=[1, 2, 3])
    _acknowledged_by_one_alone(processes, copies)

    node.swap_disk(tmp_path / "other")
    _start_all(processes)

    _check_nothing_leads_but_the_right_folder(processes, copies, tmp_path / "other")


@pytest.mark.timeout(180)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
def test_the_last_in_sync_replica_does_not_lead_without_the_partitions_folder(processes: Processes) -> None:
    copies, node = Copies(processes, "gone", [1, 2, 3]), processes.nodes[1]
    copies.write()
    until(lambda: read_offsets(node.folder / HIGH_WATERMARKS).get(copies.at) == 50, "a checkpoint")
    _acknowledged_by_one_alone(processes, copies)

    shutil.rmtree(node.folder / "gone-0")
    _start_all(processes)

    _let_the_controller_decide(processes, "decided")
    assert copies.seen(2) == (-1, (1, 2, 3), (1,))


@pytest.mark.timeout(180)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
def test_the_last_in_sync_replica_leads_again_after_a_kill(processes: Processes) -> None:
    copies = Copies(processes, "killed", [1, 2, 3])
    copies.write()
    _acknowledged_by_one_alone(processes, copies)

    _start_all(processes)

    copies.wait_for(2, leader=1, isr=[1, 2, 3])
    assert copies.lost() == set()


@pytest.mark.timeout(180)
@pytest.mark.skipif(not IS_LONG, reason="part of make cluster-test")
def test_an_unclean_election_prefers_a_replica_with_records_to_an_empty_one(
    processes: Processes, tmp_path: Path
) -> None:
    copies = Copies(processes, "given-up", [1, 2, 3])
    copies.write()
    copies.wait_for(2, leader=1, isr=[1, 2, 3])
    before = set(copies.acknowledged)
    _acknowledged_by_one_alone(processes, copies)
    processes.nodes[1].swap_disk(tmp_path / "right")
    _start_all(processes)
    _let_the_controller_decide(processes, "decided")

    with Admin(processes.servers) as admin:
        assert admin.elect_leaders([copies.at], unclean=True) == {copies.at: None}

    copies.wait_for(2, leader=2, isr=[1, 2, 3])
    assert not copies.lost() & before
