"""Who asks, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from ottla.core.ids import Address
    from ottla.wire.header import RequestHeader


_LONGEST_SHOWN: Final = 80


class Client(Protocol):
    """What handlers may know of whoever asks: a connection, or another door of this broker."""

    peer: tuple[str, int]
    local: tuple[str, int]
    state: dict[str, object]
    principal: str
    """Who it is, such as User:ann."""
    groups: tuple[str, ...]
    """Groups that its token names, such as Group:sales."""
    login: object

    @property
    def listener(self) -> str:
        """The name of the listener that it came in by."""

    @property
    def advertised(self) -> Address | None:
        """Where it is told to connect to, if not to where it is."""

    def mute_for(self, seconds: float) -> None:
        """Serve nothing more of it for so long, once what is being answered is answered."""


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

    @property
    def peer(self) -> str:
        host, port = self.connection.peer
        return f"{host}:{port}"

    def __str__(self) -> str:
        return f"client {self.client_id[:_LONGEST_SHOWN]!r} at {self.peer}"
