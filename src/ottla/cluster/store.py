"""What a cluster asks of whoever keeps what its nodes agree on: ZooKeeper (`zookeeper`), or, among the workers of one
machine, their supervisor (`builtin`). Nodes by path with versions, that may go with a session, and can be watched.
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
    """The connection is broken, and the session may go on when it is there again."""
    LOST = "lost"


OnNode: TypeAlias = Callable[[Node | None], None]
OnChildren: TypeAlias = Callable[[list[str] | None], None]
OnFailure: TypeAlias = Callable[[], None]
OnWatched: TypeAlias = Callable[[str], None]


class Store(Protocol):
    """Callbacks are called in threads of the store's own, answers in the order in which it gave them."""

    @property
    def timeout_s(self) -> float:
        """How long a session lasts after the last question that was answered."""

    def open(self) -> None:
        """Connect; ConfigError if that cannot be."""

    def close(self) -> None:
        """End the session: what goes with it goes now."""

    @property
    def session_id(self) -> int: ...

    @property
    def is_connected(self) -> bool: ...

    def listen(self, listener: Callable[[Session], None]) -> None:
        """Must not block, nor wait for anything of the store."""

    def look(self, path: str, found: OnNode, failed: OnFailure, watch: OnWatched | None = None) -> None:
        """Read a node, None if there is none; `watch` is told once when it has changed."""

    def look_out(self, path: str, found: Callable[[bool], None], failed: OnFailure, watch: OnWatched) -> None:
        """Whether there is such a node; `watch` is told once when there is, or when it has changed."""

    def list(self, path: str, found: OnChildren, failed: OnFailure, watch: OnWatched) -> None:
        """The names of a node's children, None if there is no such node; `watch` is told once when they change."""

    def read(self, path: str) -> Node | None:
        """Read a node, and wait for it. Not for the store's own threads."""

    def commit(self, operations: Sequence[Operation]) -> None:
        """All or nothing. Conflict: one did not fit. Disconnected: it is not known."""
