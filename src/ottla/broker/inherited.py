"""What a worker has from its supervisor: its link to the catalog, and ports that are bound already."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from ottla.cluster.store import Store


class Inherited(NamedTuple):
    catalog: Store
    bound: Sequence[Sequence[socket.socket]]
    """For each listener: the worker's own port, and the one that all workers share."""
    nodes: int = 1
    """How many brokers are started together; clients are told of them once all are there."""
