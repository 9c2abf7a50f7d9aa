"""The ports of all workers, bound by their supervisor: a restarted worker gets the same ports.

Connections made in between wait in the kernel's backlog, and no other process can take the port.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.cli.workers.plan import own_ports
from ottla.core.errors import OttlaError
from ottla.core.ids import Address
from ottla.net.binding import bind

if TYPE_CHECKING:
    import socket
    from collections.abc import Collection, Sequence

    from ottla.cluster.builtin.config import WorkersConfig
    from ottla.net.listener_config import ListenerConfig


class Ports:
    def __init__(
        self, listeners: Sequence[ListenerConfig], workers: WorkersConfig, taken: Collection[int] = ()
    ) -> None:
        """OttlaError with the address that cannot be used; `taken` are ports for HTTP."""
        self.listeners = listeners
        self._sockets: list[socket.socket] = []
        self._shared = [self._bind(each.host, each.port) for each in listeners]
        self._own = [
            [self._bind(listener.host, port) for listener, port in zip(listeners, ports, strict=True)]
            for ports in own_ports(listeners, workers, taken)
        ]

    def _bind(self, host: str, port: int) -> list[socket.socket]:
        try:
            bound = bind(host, port)
        except OSError as refused:
            self.close()
            raise OttlaError(f"cannot listen on {Address(host, port)}: {refused.strerror}") from None
        self._sockets += bound
        return bound

    @property
    def shared_addresses(self) -> list[Address]:
        return [_address(bound) for bound in self._shared]

    def own_addresses(self, worker: int) -> list[Address]:
        return [_address(bound) for bound in self._own[worker]]

    def descriptors(self, worker: int) -> list[list[int]]:
        """For each listener: the worker's own port, and the shared one."""
        return [
            [each.fileno() for each in (*own, *shared)]
            for own, shared in zip(self._own[worker], self._shared, strict=True)
        ]

    def close(self) -> None:
        """Close the ports: new connections are refused unless a worker still listens."""
        for each in self._sockets:
            each.close()


def _address(bound: Sequence[socket.socket]) -> Address:
    return Address(*bound[0].getsockname()[:2])
