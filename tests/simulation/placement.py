"""Replicas and leaders according to the catalog, and known damaged replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.cluster.nodes import PARTITIONS, TOPICS, from_json
from ottla.cluster.state import NO_NODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ottla.cluster.builtin.tree import Tree
    from ottla.cluster.operations import Operation

_PARTITION_DEPTH = 3


class Place(NamedTuple):
    topic: str
    partition: int
    replicas: tuple[int, ...]
    leader: int
    epoch: int
    isr: tuple[int, ...]
    is_moving: bool

    @property
    def at(self) -> tuple[str, int]:
        return self.topic, self.partition


def places(tree: Tree) -> Iterator[Place]:
    for topic in tree.children(TOPICS) or ():
        entry = tree.get(f"{TOPICS}/{topic}")
        topic_id = None if entry is None else from_json(entry.data)["id"]
        folder = f"{PARTITIONS}/{topic_id}"
        for index in tree.children(folder) or ():
            node = tree.get(f"{folder}/{index}")
            if node is not None:
                fields = from_json(node.data)
                yield Place(
                    topic,
                    int(index),
                    tuple(fields["replicas"]),
                    fields["leader"],
                    fields["leader_epoch"],
                    tuple(fields["isr"]),
                    bool(fields.get("adding") or fields.get("removing")),
                )


class Damage:
    """Tracks disks that lost data."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._lacking: set[int] = set()
        self._ever_hit: set[int] = set()
        self.broken: set[tuple[str, int, int]] = set()
        """Topic, partition and node: the folder cannot be used."""
        self.rotten: set[int] = set()
        """Nodes with changed bits on their disks, until these are replaced."""

    def _settle(self) -> None:
        """A node that is in sync everywhere has all data again. Without a leader, the ISR is of the lost disk."""
        for node in sorted(self._lacking):
            held = [place for place in places(self._tree) if node in place.replicas]
            if all(node in place.isr and len(place.isr) > 1 and place.leader != NO_NODE for place in held):
                self._lacking.discard(node)

    def may_hit(self, node: int) -> bool:
        """Whether every record is on a disk that has lost nothing, even without this node's."""
        self._settle()
        unsound = self._lacking | self.rotten | {node}
        sound = [set(place.isr) - unsound for place in places(self._tree) if node in place.isr]
        return unsound == {node} and all(sound)

    def is_last_somewhere(self, node: int) -> bool:
        return any(place.isr == (node,) for place in places(self._tree))

    def hit(self, node: int) -> None:
        self._lacking.add(node)
        self._ever_hit.add(node)

    def is_rightly_leaderless(self, place: Place) -> bool:
        """Whether all in-sync replicas have lost their records, so that no leader is correct."""
        return place.leader == NO_NODE and self._ever_hit.issuperset(place.isr)


class LeaderWatch:
    """Detects two leaders in one epoch when the second is written to the catalog."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._leaders: dict[tuple[str, int], int] = {}

    def committed(self, _at_s: float, operations: Sequence[Operation]) -> None:
        for operation in operations:
            data = getattr(operation, "data", b"")
            if operation.path.startswith(PARTITIONS + "/") and operation.path.count("/") == _PARTITION_DEPTH and data:
                fields = from_json(data)
                key = operation.path, fields["leader_epoch"]
                if fields["leader"] != NO_NODE and self._leaders.setdefault(key, fields["leader"]) != fields["leader"]:
                    self.found.append(f"two leaders: {self._leaders[key]} and {fields['leader']} of {key}")
                if not fields["isr"]:
                    self.found.append(f"nobody in sync: {key}")
