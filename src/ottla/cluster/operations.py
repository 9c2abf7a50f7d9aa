"""Changes to ZooKeeper as values: a list of them happens whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

ANY_VERSION: Final = -1


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    data: bytes = b""
    is_ephemeral: bool = False
    """It goes with the session that made it."""


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
    """Nothing happens unless this node is at this version."""

    path: str
    version: int


Operation: TypeAlias = Create | Put | Delete | Check


@dataclass(frozen=True, slots=True)
class Node:
    """What ZooKeeper holds at a path, at one moment."""

    data: bytes
    version: int
    created: int
    """The transaction that created it: one that was deleted and created again has another."""
    owner: int = 0
    """The session that it goes with, if it is ephemeral."""


class Conflict(Exception):  # noqa: N818 - nothing is wrong: somebody else was quicker
    """What the change was decided upon is no longer so: the operation at `index` did not fit, and none was done."""

    def __init__(self, index: int, operation: Operation) -> None:
        super().__init__(f"operation {index} did not fit: {operation}")
        self.index = index
        self.operation = operation


class Disconnected(Exception):  # noqa: N818
    """No answer came: it is not known whether the change happened."""
