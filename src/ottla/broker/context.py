"""Who asks, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from ottla.wire.header import RequestHeader


class Client(Protocol):
    """What handlers may know of whoever asks: a connection, or another door of this broker."""

    peer: tuple[str, int]
    local: tuple[str, int]
    state: dict[str, object]


class Context(msgspec.Struct, frozen=True, gc=False):
    header: RequestHeader
    connection: Client

    @property
    def version(self) -> int:
        return self.header.version

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""

    @property
    def client_host(self) -> str:
        """As Kafka shows it, with a slash before the address."""
        return f"/{self.connection.peer[0]}"

    def __str__(self) -> str:
        host, port = self.connection.peer
        return f"client {self.client_id!r} at {host}:{port}"
