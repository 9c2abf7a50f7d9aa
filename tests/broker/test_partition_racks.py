"""The racks of a partition, derived from the cluster's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cluster.making import brokers

from ottla.broker.partition_racks import PartitionRacks
from ottla.cluster.state import ClusterView, PartitionKey, PartitionState, ViewChange
from ottla.core.ids import TopicId

if TYPE_CHECKING:
    from ottla.cluster.state import ViewListener

TOPIC = TopicId.random()
KEY = PartitionKey(TOPIC, 0)


class FakeCluster:
    def __init__(self, replicas: tuple[int, ...], racks: dict[int, str]) -> None:
        self.listener: ViewListener | None = None
        self.view = ClusterView(brokers(1, 2, 3, racks=racks), 1, {KEY: held_by(replicas)})

    def listen(self, listener: ViewListener) -> None:
        self.listener = listener

    def show(self, *nodes: int, racks: dict[int, str], replicas: tuple[int, ...] = (1, 2), leader: int = 1) -> None:
        before = self.view
        self.view = ClusterView(brokers(*nodes, racks=racks), 1, {KEY: held_by(replicas, leader)})
        assert self.listener is not None
        self.listener(ViewChange(before, self.view, frozenset({KEY})))


def held_by(replicas: tuple[int, ...], leader: int = 1) -> PartitionState:
    return PartitionState(TOPIC, "t", 0, replicas, leader, 0, replicas)


RACKS = {1: "b", 2: "a", 3: "c"}


def watched(racks: dict[int, str]) -> tuple[FakeCluster, PartitionRacks]:
    cluster = FakeCluster((1, 2), racks)
    return cluster, PartitionRacks(cluster)  # type: ignore[arg-type]


def test_the_racks_of_a_partition_are_those_of_its_replicas() -> None:
    _, racks = watched(RACKS)
    assert racks.of(TOPIC, 1) == (("a", "b"),)
    assert racks.of(TOPIC, 2) == (("a", "b"), ()), "nothing is known yet about a new partition"


def test_without_racks_nothing_is_reported_and_nothing_changes() -> None:
    cluster, racks = watched({})
    cluster.show(1, 2, 3, racks={}, replicas=(1, 3))
    assert racks.of(TOPIC, 1) == ()
    assert racks.version == 0


def test_a_leader_change_or_a_temporarily_absent_node_changes_nothing() -> None:
    cluster, racks = watched(RACKS)
    cluster.show(1, 3, racks=RACKS, leader=1)
    cluster.show(1, 2, 3, racks=RACKS, leader=2)
    assert racks.version == 0
    assert racks.of(TOPIC, 1) == (("a", "b"),)


def test_moving_a_partition_or_a_node_changes_the_racks() -> None:
    cluster, racks = watched(RACKS)
    cluster.show(1, 2, 3, racks=RACKS, replicas=(1, 3))
    assert (racks.version, racks.of(TOPIC, 1)) == (1, (("b", "c"),))
    cluster.show(1, 2, 3, racks={**RACKS, 3: "d"}, replicas=(1, 3))
    assert (racks.version, racks.of(TOPIC, 1)) == (2, (("b", "d"),))
    cluster.show(1, 2, 3, racks={1: "b", 2: "a"}, replicas=(1, 3))
    assert (racks.version, racks.of(TOPIC, 1)) == (3, (("b",),))
