"""The interface of a cluster's metadata store: ZooKeeper (`zookeeper`), or, for the workers of one machine, their
supervisor (`builtin`). Nodes by path, with versions, optionally ephemeral, that can be watched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ottla.cluster.operations import Node

if TYPE_CHECKING:
    from ottla.cluster.operations import Operation


class Session(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """The connection is lost; the session may continue after a reconnect."""
    LOST = "lost"


OnNode: TypeAlias = Callable[[Node | None], None]
OnChildren: TypeAlias = Callable[[list[str] | None], None]
OnFailure: TypeAlias = Callable[[], None]
OnWatched: TypeAlias = Callable[[str], None]


class Store(Protocol):
    """Nodes by path. Callbacks are called in the store's threads, in the order of the responses."""

    @property
    def timeout_s(self) -> float:
        """How long a session lasts after the last answered request."""

    def open(self) -> None:
        """Connect; raises ConfigError on failure."""

    def close(self) -> None:
        """End the session: its ephemeral nodes are deleted at once."""

    @property
    def session_id(self) -> int: ...

    @property
    def is_connected(self) -> bool: ...

    def listen(self, listener: Callable[[Session], None]) -> None:
        """Register a listener, which must not block, nor wait for the store."""

    def look(self, path: str, found: OnNode, failed: OnFailure, watch: OnWatched | None = None) -> None:
        """Read a node, None if it does not exist; `watch` is called once when it changes."""

    def look_out(self, path: str, found: Callable[[bool], None], failed: OnFailure, watch: OnWatched) -> None:
        """Whether the node exists; `watch` is called once when it is created or changes."""

    def list(self, path: str, found: OnChildren, failed: OnFailure, watch: OnWatched) -> None:
        """The names of a node's children, None if it does not exist; `watch` is called once when they change."""

    def read(self, path: str) -> Node | None:
        """Read a node and wait for the result. Must not be called in the store's threads."""

    def commit(self, operations: Sequence[Operation]) -> None:
        """Apply operations atomically. Raises Conflict if a condition fails, Disconnected if the outcome is unknown."""
