"""The last in-sync copy of acknowledged records is never given up: real processes, a real ZooKeeper."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import ErrorCode

from .copies import Copies
from .processes import Processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.cluster.server import ZooKeeperServer


@pytest.fixture
def processes(zookeeper_server: ZooKeeperServer, tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path / "cluster", f"{zookeeper_server.address}/copies-{os.getpid()}-{tmp_path.name}") as running:
        yield running


def _led_by_its_new_replica_alone(processes: Processes) -> Copies:
    """On its way from 1 to 2 and 3; 3 does not follow, 1 is dead, and 2 has acknowledged records that 1 has not."""
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
def test_a_cancelled_move_does_not_lose_what_its_new_replica_alone_has(processes: Processes) -> None:
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
def test_a_redirected_move_keeps_the_only_replica_in_sync_until_another_is(processes: Processes) -> None:
    copies = _led_by_its_new_replica_alone(processes)

    assert copies.move([1], by=2).error_code == 0
    copies.write()
    processes.nodes[1].start()
    processes.nodes[1].wait_until_ready()
    copies.wait_for(2, leader=1, isr=[1])

    assert copies.lost() == set()
    assert copies.seen(2).replicas == (1,)
