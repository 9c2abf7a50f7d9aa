"""Faults under load, on real processes and a real ZooKeeper: nothing acknowledged is lost, repeated or reordered.

The long version is `make cluster-test`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from .checker import violations
from .faults import Faults
from .history import History
from .load import ConfluentWriter, OttlaWriter, Placed, PlainWriter, Trial, read_all, under_load
from .processes import Processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ottla.cluster.server import ZooKeeperServer

    from .load import Writer

PARTITIONS = 2
IS_LONG = bool(os.environ.get("LONG_CLUSTER_TEST"))
SHORT = [Faults.kill_leader, Faults.kill_leader_of_frozen_followers]
LONG = [
    Faults.freeze_leader,
    Faults.restart_in_turn,
    Faults.kill_in_turn,
    Faults.wipe_follower,
    Faults.kill_all,
]


@pytest.fixture(scope="module")
def processes(zookeeper_server: ZooKeeperServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    folder = tmp_path_factory.mktemp("cluster")
    with Processes(folder, f"{zookeeper_server.address}/{folder.name}") as running:
        yield running


def found_wrong(
    processes: Processes, folder: Path, kinds: list[type[Writer]], happens: Callable[[Faults, list[Writer]], None]
) -> list[str]:
    history = History(folder / "history.jsonl")
    trial = Trial(processes.servers, happens.__name__, PARTITIONS, history)
    trial.create_topic()
    faults = Faults(processes, Placed(trial), history)
    try:
        under_load(trial, [kind(trial) for kind in kinds], lambda writers: happens(faults, writers))
        return violations(history, read_all(trial))
    finally:
        history.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("happens", [*SHORT, *(LONG if IS_LONG else [])], ids=lambda fault: fault.__name__)
def test_what_was_acknowledged_is_there_once_and_in_order(
    processes: Processes, tmp_path: Path, happens: Callable[[Faults, list[Writer]], None]
) -> None:
    assert found_wrong(processes, tmp_path, [ConfluentWriter, OttlaWriter], happens) == []


@pytest.mark.timeout(300)
def test_a_leader_that_acknowledges_before_it_has_replicated_is_caught(
    zookeeper_server: ZooKeeperServer, tmp_path: Path
) -> None:
    zookeeper = f"{zookeeper_server.address}/hasty-{os.getpid()}"
    with Processes(tmp_path / "cluster", zookeeper, module="tests.cluster.checking.hasty") as processes:
        wrong = found_wrong(processes, tmp_path, [PlainWriter], Faults.kill_leader_of_frozen_followers)

    assert any(each.startswith("lost") for each in wrong)
