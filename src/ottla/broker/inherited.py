"""The resources that a worker inherits from its supervisor: its catalog connection and bound ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from ottla.cluster.store import Store


class Inherited(NamedTuple):
    catalog: Store
    bound: Sequence[Sequence[socket.socket]]
    """For each listener: the worker's separate port, and the shared one."""
    nodes: int = 1
    """The number of brokers that start together; clients see them once all have registered."""
