"""A low-level client: sends any request in any version and returns the unmodified response."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from ottla.wire.codec import decode_response, encode_request
from ottla.wire.declare import Response

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from ottla.wire.codec import RequestFor

ResponseT = TypeVar("ResponseT", bound=Response)

PATIENCE_S: Final = 10.0
_SIZE: Final = struct.Struct(">i")


class HungUpError(Exception):
    """The broker closed the connection instead of answering."""


class Sent(NamedTuple, Generic[ResponseT]):
    """A request that has been sent, as `receive` needs it to read the answer."""

    request: RequestFor[ResponseT]
    version: int
    correlation_id: int


class RawClient:
    """One blocking connection. `ask` sends and receives; use `send` and `receive` for requests that wait at the broker.

        with RawClient(broker.bootstrap_servers) as client:
            answer = client.ask(MetadataRequest(topics=None), version=9)

    Responses arrive in the order of the requests, so receive them in that order.
    """

    def __init__(self, address: str, client_id: str | None = "raw", timeout_s: float = PATIENCE_S) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s)
        self._client_id = client_id
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def ask(self, request: RequestFor[ResponseT], version: int | None = None) -> ResponseT:
        """Send the request, in its latest version unless another is given, and wait for the answer."""
        return self.receive(self.send(request, version))

    def send(self, request: RequestFor[ResponseT], version: int | None = None) -> Sent[ResponseT]:
        self._correlation_id += 1
        sent = Sent(request, request.API.last if version is None else version, self._correlation_id)
        frame: Any = encode_request(request, sent.version, sent.correlation_id, self._client_id)  # type: ignore[arg-type]
        self.socket.sendall(b"".join(frame))
        return sent

    def receive(self, sent: Sent[ResponseT]) -> ResponseT:
        return decode_response(sent.request, sent.version, sent.correlation_id, memoryview(self.receive_frame()))

    def send_bytes(self, data: bytes) -> None:
        """Send bytes, which need not be a valid request."""
        self.socket.sendall(data)

    def receive_frame(self) -> bytes:
        """The next response frame, without its size prefix."""
        return self._read(_SIZE.unpack(self._read(_SIZE.size))[0])

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                piece = self.socket.recv(size - len(data))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise HungUpError(f"after {len(data)} of {size} bytes")
            data += piece
        return bytes(data)
