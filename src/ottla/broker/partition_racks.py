"""The racks of a partition's replicas, and when they change (KIP-1101)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.cluster.state import Cluster, ClusterView, PartitionState, ViewChange
    from ottla.core.ids import TopicId


class PartitionRacks:
    """An offline node keeps its rack, as in Kafka: its replicas have not moved."""

    def __init__(self, cluster: Cluster) -> None:
        self.version = 0
        """Changes with every update."""
        self._cluster = cluster
        self._rack_of: dict[int, str] = {}
        self._learn(cluster.view)
        cluster.listen(self._changed)

    def of(self, topic_id: TopicId, partitions: int) -> tuple[tuple[str, ...], ...]:
        """The racks by partition; empty if no node has a rack."""
        if not self._rack_of:
            return ()
        view = self._cluster.view
        return tuple(self._racks(view.partition(topic_id, index)) for index in range(partitions))

    def _racks(self, state: PartitionState | None) -> tuple[str, ...]:
        held = () if state is None else state.replicas
        return tuple(sorted(self._rack_of[node] for node in held if node in self._rack_of))

    def _changed(self, change: ViewChange) -> None:
        is_learned = self._learn(change.after)
        if is_learned or any(
            self._racks(change.before.partitions.get(key)) != self._racks(change.after.partitions.get(key))
            for key in change.partitions
        ):
            self.version += 1

    def _learn(self, view: ClusterView) -> bool:
        """Update the rack of a node. Returns whether it changed."""
        registered = {node: broker.rack for node, broker in view.brokers.items() if broker.rack is not None}
        unregistered = {node for node, broker in view.brokers.items() if broker.rack is None}
        known = {node: rack for node, rack in self._rack_of.items() if node not in unregistered} | registered
        is_changed = known != self._rack_of
        self._rack_of = known
        return is_changed
