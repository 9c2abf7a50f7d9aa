"""Builds the next view of the cluster from changed ZooKeeper nodes. Sends no requests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.cluster.catalog_nodes import is_draining, node_of_configs, read_wanted
from ottla.cluster.nodes import (
    BROKERS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    PARTITIONS,
    TOPICS,
    read_broker,
    read_controller,
    read_partition,
    read_partition_path,
)
from ottla.cluster.state import NO_NODE, ClusterView, PartitionKey, PartitionState, ViewChange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.cluster.decisions import WantedTopic
    from ottla.cluster.operations import Node
    from ottla.core.ids import TopicId

    Changed = Mapping[str, Node | None]


class Knowledge:
    def __init__(self) -> None:
        self.view = ClusterView()
        self.topics: dict[TopicId, WantedTopic] = {}
        self.orphans: set[PartitionKey] = set()
        """Partitions that have a state but whose topic was deleted."""
        self.controller_version = -1
        """The version of the controller epoch's node."""
        self.new_topics: set[TopicId] = set()
        """Topics that were created or grew by the last change."""
        self._topics_by_path: dict[str, WantedTopic] = {}
        self._states: dict[TopicId, dict[int, Node]] = {}
        self._brokers: dict[int, Node] = {}
        self._draining: set[int] = set()

    def learn(self, changed: Changed) -> ViewChange:
        before = self.view
        self._learn_nodes(changed)
        gone_or_come = self._learn_topics(changed)
        partitions = self._learn_partitions(changed)
        for topic_id in gone_or_come:
            partitions |= {PartitionKey(topic_id, index) for index in self._states.get(topic_id, {})}
        if partitions:
            self.view = self.view.with_partitions({key: self._state(key) for key in partitions})
        return ViewChange(before, self.view, frozenset(partitions))

    # Nodes and the controller

    def _learn_nodes(self, changed: Changed) -> None:
        is_changed = False
        for path, node in changed.items():
            folder, _, name = path.rpartition("/")
            if path == CONTROLLER:
                self.view = replace(self.view, controller_id=NO_NODE if node is None else read_controller(node.data))
            elif path == CONTROLLER_EPOCH and node is not None:
                self.controller_version = node.version
            elif (node_id := node_of_configs(path)) is not None:
                is_changed = True
                is_leaving = node is not None and is_draining(node.data)
                (self._draining.add if is_leaving else self._draining.discard)(node_id)
            elif folder == BROKERS:
                is_changed = True
                if node is None:
                    self._brokers.pop(int(name), None)
                else:
                    self._brokers[int(name)] = node
        if is_changed:
            brokers = {
                node_id: read_broker(node_id, node.data, node.created, is_draining=node_id in self._draining)
                for node_id, node in sorted(self._brokers.items())
            }
            self.view = replace(self.view, brokers=brokers)

    # Topics

    def _learn_topics(self, changed: Changed) -> set[TopicId]:
        """The topics that were created or deleted, or whose states changed."""
        self.new_topics = set()
        differing: set[TopicId] = set()
        for path, node in changed.items():
            if path.startswith(f"{TOPICS}/"):
                before = self._topics_by_path.pop(path, None)
                if before is not None and (node is None or read_wanted(node.data).id != before.id):
                    del self.topics[before.id]
                    differing.add(before.id)
                if node is not None:
                    topic = self._topics_by_path[path] = read_wanted(node.data)
                    known = self.topics.get(topic.id)
                    if known is None or known.min_isr != topic.min_isr:
                        differing.add(topic.id)
                    if topic != self.topics.get(topic.id):
                        self.new_topics.add(topic.id)
                    self.topics[topic.id] = topic
        return differing

    # Partitions

    def _learn_partitions(self, changed: Changed) -> set[PartitionKey]:
        differing = set()
        for path, node in changed.items():
            if path.startswith(f"{PARTITIONS}/"):
                key = read_partition_path(path)
                differing.add(key)
                states = self._states.setdefault(key.topic_id, {})
                if node is not None:
                    states[key.partition] = node
                else:
                    states.pop(key.partition, None)
                    if not states:
                        del self._states[key.topic_id]
        return differing

    def _state(self, key: PartitionKey) -> PartitionState | None:
        """The state for the view; None for an orphan, whose topic does not exist."""
        node = self._states.get(key.topic_id, {}).get(key.partition)
        topic = self.topics.get(key.topic_id)
        self.orphans.discard(key)
        if node is None:
            return None
        if topic is None:
            self.orphans.add(key)
            return None
        return read_partition(key, topic.name, node.data, node.version, topic.min_isr)
