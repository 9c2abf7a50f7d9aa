"""What a connection needs of its listener: the interface that answers its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ottla.core.ids import Address
    from ottla.net.connection import Connection
    from ottla.wire.declare import Sendable


class InPlace(Protocol):
    """Answers some requests in the receive buffer; all others are answered by the Python code."""

    def serve(self, data: bytearray, count: int, sends_files: bool, /) -> int:  # noqa: FBT001
        """Answer some of the first requests in these bytes; returns the size of the answered requests."""

    def take_answers(self) -> bytes | list[Sendable]:
        """The responses to the answered requests; a list if there are ranges of files among them."""

    def take_wait(self) -> Waiting | None:
        """The last request, if it waits for something."""


class Waiting(Protocol):
    """A request that is answered later."""

    def when_done(self, done: Callable[[bytes | memoryview | list[Sendable]], None], /) -> None:
        """Call back with the response, or with the request if `Service.answer` must answer it."""

    def cancel(self) -> object: ...


class Service(Protocol):
    """The listener's interface for its connections."""

    max_frame_bytes: int
    needs_login: bool
    """Whether clients may send only little until `Connection.admit` is called."""
    name: str
    """The listener name: in a cluster, clients get the addresses of the other nodes' listeners with this name."""
    advertised: Address | None
    """The advertised address, if it differs."""
    scratch: bytearray
    """The receive buffer; empty between two reads, so all connections of a loop share it."""
    in_place: InPlace | None
    """None if `answer` must see every request."""
    sends_files: bool
    """Whether ranges of files can be sent: not over TLS."""

    def opened(self, connection: Connection) -> bool:
        """Whether to accept this connection."""

    def closed(self, connection: Connection) -> None: ...

    def answer(
        self, connection: Connection, frame: memoryview
    ) -> list[Sendable] | Awaitable[list[Sendable] | None] | None:
        """The buffers to send for this request, now or later; None for no response."""

    def refused(self, connection: Connection, reason: Exception) -> None:
        """Handle a connection that is closed for this reason."""

    def failed(self, connection: Connection, error: BaseException) -> None:
        """Handle a bug while answering; the connection is closed."""

    def half_received(self, size: int) -> None:
        """Count this many more held bytes of an incomplete request."""

    def slowed(self, connection: Connection, size: int) -> None:
        """Count this many held bytes of responses for a slow client."""

    def caught_up(self, connection: Connection) -> None:
        """Handle a client that has read its responses."""
