"""The context of a request: the client and its connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from ottla.core.ids import Address
    from ottla.wire.header import RequestHeader


_LONGEST_SHOWN: Final = 80


class Client(Protocol):
    """The client of a request: a connection, or another protocol of this broker."""

    peer: tuple[str, int]
    local: tuple[str, int]
    state: dict[str, object]
    principal: str
    """The principal, such as User:ann."""
    groups: tuple[str, ...]
    """Groups in its token, such as Group:sales."""
    login: object

    @property
    def sends_files(self) -> bool:
        """Whether the records of a response may be ranges of files."""

    @property
    def listener(self) -> str:
        """The name of its listener."""

    @property
    def advertised(self) -> Address | None:
        """The advertised address, if it differs from its local one."""

    def mute_for(self, seconds: float) -> None:
        """Throttle it for this long, after the current response."""


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
        """In Kafka's format, with a slash before the address."""
        return f"/{self.connection.peer[0]}"

    @property
    def peer(self) -> str:
        host, port = self.connection.peer
        return f"{host}:{port}"

    def __str__(self) -> str:
        return f"client {self.client_id[:_LONGEST_SHOWN]!r} at {self.peer}"
