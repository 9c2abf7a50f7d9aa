"""Changes to ZooKeeper as values: a list of them is applied atomically."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

ANY_VERSION: Final = -1


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    data: bytes = b""
    is_ephemeral: bool = False
    """Whether it is deleted when the session that created it ends."""


@dataclass(frozen=True, slots=True)
class Put:
    path: str
    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """A condition: this node has this version."""

    path: str
    version: int


Operation: TypeAlias = Create | Put | Delete | Check


@dataclass(frozen=True, slots=True)
class Node:
    """A node's state in ZooKeeper at one moment."""

    data: bytes
    version: int
    created: int
    """The transaction that created it: a re-created node has another one."""
    owner: int = 0
    """The session that owns it, if it is ephemeral."""


class Conflict(Exception):  # noqa: N818 - not an error: another node was faster
    """A condition does not hold any more: the operation at `index` failed, and none was applied."""

    def __init__(self, index: int, operation: Operation) -> None:
        super().__init__(f"operation {index} conflicts: {operation}")
        self.index = index
        self.operation = operation


class Disconnected(Exception):  # noqa: N818
    """No response: it is unknown whether the change was applied."""
