"""Nodes by path, with ZooKeeper's rules: versions, parents, ephemeral nodes. In memory, and pure."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ottla.cluster.operations import ANY_VERSION, Check, Conflict, Create, Delete, Node, Put

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.cluster.operations import Operation

Changes: TypeAlias = "dict[str, Node | None]"
"""The new node at each path; None if it was deleted."""


class Aspect(Enum):
    """The aspects of a node that can be watched."""

    ITSELF = "itself"
    CHILDREN = "children"


class Event(NamedTuple):
    aspect: Aspect
    path: str


class Tree:
    def __init__(self, nodes: Mapping[str, Node], last_change: int) -> None:
        """`last_change` is the number of the last change; numbers are never reused."""
        self._nodes: dict[str, Node] = {"/": Node(b"", 0, 0)}
        self._children: dict[str, set[str]] = {"/": set()}
        self._last_change = last_change
        # A parent's path is a prefix of its children's, so it sorts before them.
        for path in sorted(nodes):
            self._put(path, nodes[path])

    def get(self, path: str) -> Node | None:
        return self._nodes.get(path)

    def children(self, path: str) -> list[str] | None:
        names = self._children.get(path)
        return None if names is None else sorted(names)

    def owned_by(self, session_id: int) -> list[str]:
        """The ephemeral nodes of this session."""
        return [path for path, node in self._nodes.items() if node.owner == session_id]

    # Changing

    def plan(self, operations: Sequence[Operation], session_id: int) -> Changes:
        """The changes made by these operations, not applied yet; raises Conflict if one fails."""
        changes: Changes = {}
        for index, operation in enumerate(operations):
            if not self._fits(operation, changes):
                raise Conflict(index, operation)
            match operation:
                case Create():
                    owner = session_id if operation.is_ephemeral else 0
                    changes[operation.path] = Node(operation.data, 0, self._last_change + 1, owner)
                case Put():
                    before = self._at(operation.path, changes)
                    assert before is not None  # noqa: S101 - for mypy: it fits
                    changes[operation.path] = Node(operation.data, before.version + 1, before.created, before.owner)
                case Delete():
                    changes[operation.path] = None
        return changes

    def apply(self, changes: Changes) -> list[Event]:
        """Apply planned changes; returns the watches to notify."""
        self._last_change += 1
        events: list[Event] = []
        for path, node in changes.items():
            known = self._nodes.get(path)
            if node is None:
                if known is not None:
                    events += self._delete(path)
                continue
            events.append(Event(Aspect.ITSELF, path))
            if known is None:
                events.append(Event(Aspect.CHILDREN, parent_of(path)))
            self._put(path, node)
        return events

    def _at(self, path: str, changes: Changes) -> Node | None:
        return changes[path] if path in changes else self._nodes.get(path)

    def _fits(self, operation: Operation, changes: Changes) -> bool:
        known = self._at(operation.path, changes)
        match operation:
            case Create():
                parent = self._at(parent_of(operation.path), changes)
                return known is None and parent is not None and not parent.owner
            case Delete():
                return _is_at(known, operation.version) and not self._has_children(operation.path, changes)
            case Put() | Check():
                return _is_at(known, operation.version)

    def _has_children(self, path: str, changes: Changes) -> bool:
        before = self._children.get(path, ())
        prefix = path.rstrip("/")
        return any(self._at(f"{prefix}/{name}", changes) is not None for name in before) or any(
            node is not None and parent_of(created) == path for created, node in changes.items()
        )

    def _put(self, path: str, node: Node) -> None:
        self._nodes[path] = node
        self._children.setdefault(path, set())
        parent, _, name = path.rpartition("/")
        self._children[parent or "/"].add(name)

    def _delete(self, path: str) -> list[Event]:
        del self._nodes[path]
        del self._children[path]
        parent = parent_of(path)
        self._children[parent].discard(path.rpartition("/")[2])
        return [Event(Aspect.ITSELF, path), Event(Aspect.CHILDREN, path), Event(Aspect.CHILDREN, parent)]


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _is_at(node: Node | None, version: int) -> bool:
    return node is not None and version in (node.version, ANY_VERSION)
