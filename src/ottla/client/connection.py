"""One connection to one broker: pipelined requests, responses matched by correlation id."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.client.errors import (
    AuthenticationFailed,
    BrokerUnavailable,
    ClientClosed,
    ClientError,
    ConnectionLost,
    NotKafka,
    RequestTimedOut,
    UnsupportedByBroker,
)
from ottla.core.errors import ErrorCode, ProtocolError
from ottla.wire.apis import API_VERSIONS
from ottla.wire.codec import decode_response, encode_request
from ottla.wire.declare import Response
from ottla.wire.frame import FrameParser

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.config import ClientConfig
    from ottla.core.ids import Address
    from ottla.wire.apis import Api
    from ottla.wire.codec import RequestFor
    from ottla.wire.declare import AnyBytes

ResponseT = TypeVar("ResponseT", bound=Response)

_LARGEST_GREETING_BYTES: Final = 1 << 20
"""Before the first valid response, a larger one means that the peer is not a Kafka broker."""
_LARGEST_ANSWER_BYTES: Final = (1 << 31) - 1
_TRUSTED_ANSWER_BYTES: Final = 64 << 20
"""A response up to this size gets its buffer at once, such as a fetch of many partitions."""
_CORRELATION_IDS: Final = 1 << 31


class _Waiting:
    """A request in flight."""

    __slots__ = ("answer", "received_before", "request", "timeout_s", "timer", "version")

    def __init__(self, request: RequestFor[Response], version: int, timeout_s: float, received: int) -> None:
        self.request = request
        self.version = version
        self.timeout_s = timeout_s
        self.received_before = received
        self.answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.timer: asyncio.TimerHandle | None = None


class Connection(asyncio.BufferedProtocol):
    """Created by `ottla.client.opening.open_connection`, which negotiates versions and authenticates."""

    _transport: asyncio.Transport

    def __init__(self, address: Address, config: ClientConfig, scratch: bytearray | None = None) -> None:
        self.address = address
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the connection is closed by either side."""
        self._client_id = config.client_id
        self._timeout_s = config.request_timeout_ms / 1000
        self._join_bytes = config.serializer_chunk_bytes
        self._scratch = bytearray(config.deserializer_chunk_bytes) if scratch is None else scratch
        self._frames = FrameParser(_LARGEST_GREETING_BYTES, self._scratch)
        self._versions: Mapping[int, tuple[int, int]] = {}
        self._features: Mapping[str, int] = {}
        self._waiting: dict[int, _Waiting] = {}
        self._last_id = 0
        self._received = 0
        self._end: ClientError | None = None
        self._drained: asyncio.Future[None] | None = None
        self._held: list[AnyBytes] | None = None  # requests held back during authentication
        self._has_answered = False  # anything but ApiVersions

    # Used by other modules

    @property
    def is_open(self) -> bool:
        return self._end is None

    @property
    def waiting_count(self) -> int:
        """The number of requests in flight."""
        return len(self._waiting)

    def version_of(self, api: Api, *, max_version: int | None = None) -> int:
        """The highest version of this API supported by both sides, at most `max_version`."""
        low, high = self._versions.get(api.key, (0, -1))
        version = min(high, api.last if max_version is None else min(api.last, max_version))
        if version < max(low, api.first):
            raise UnsupportedByBroker(api, self._why_not(api, low, high, max_version))
        return version

    def level_of(self, feature: str) -> int:
        """The finalized version of this feature (KIP-584); 0 if unknown."""
        return self._features.get(feature, 0)

    def ask(
        self,
        request: RequestFor[ResponseT],
        *,
        timeout_s: float | None = None,
        version: int | None = None,
        is_login: bool = False,
    ) -> asyncio.Future[ResponseT]:
        """Send the request now; returns its pending response. Requests are sent in call order."""
        if self._end is not None:
            raise self._ended(request.API)
        wanted = self.version_of(request.API) if version is None else version
        correlation_id = self._send(request, wanted, is_login=is_login)
        waiting = _Waiting(request, wanted, self._timeout_s if timeout_s is None else timeout_s, self._received)
        waiting.timer = asyncio.get_running_loop().call_later(waiting.timeout_s, self._timed_out, correlation_id)
        self._waiting[correlation_id] = waiting
        return waiting.answer  # type: ignore[return-value]  # decoded as the request's own RESPONSE

    def post(self, request: RequestFor[Response], *, version: int | None = None) -> None:
        """Send a request without a response."""
        if self._end is not None:
            raise self._ended(request.API)
        self._send(request, self.version_of(request.API) if version is None else version)

    async def drain(self) -> None:
        """Wait until the socket is writable."""
        if self._drained is not None and self._end is None:
            await asyncio.shield(self._drained)

    def close(self, reason: ClientError | None = None) -> None:
        """Close now: requests in flight fail with the reason."""
        self._finish(reason or ClientClosed("the connection was closed"))
        if not self._transport.is_closing():
            self._transport.abort()

    def hold_back(self) -> None:
        """Send only authentication requests, until `let_go`."""
        self._held = []

    def let_go(self) -> None:
        held, self._held = self._held, None
        if held and self._end is None:
            self._transport.writelines(held)

    def greeted(self, versions: Mapping[int, tuple[int, int]], features: Mapping[str, int]) -> None:
        """Store the broker's API versions and finalized features."""
        self._versions = versions
        self._features = features
        self._frames = FrameParser(_LARGEST_ANSWER_BYTES, self._scratch, _TRUSTED_ANSWER_BYTES)

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # it is a socket's

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._received += nbytes
        try:
            for frame in self._frames.buffer_updated(nbytes):
                self._take(frame)
        except ProtocolError as broken:
            self.close(self._not_understood(broken))

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish(self._why_lost(exc))
        if not self.closed.done():
            self.closed.set_result(None)

    def pause_writing(self) -> None:
        self._drained = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    # Requests and responses

    def _send(self, request: RequestFor[Response], version: int, *, is_login: bool = False) -> int:
        correlation_id = self._last_id = (self._last_id + 1) % _CORRELATION_IDS
        buffers: list[AnyBytes] = encode_request(request, version, correlation_id, self._client_id)  # type: ignore[arg-type]
        if self._held is not None and not is_login:
            self._held += buffers
        elif len(buffers) == 1:
            self._transport.write(buffers[0])
        elif sum(map(len, buffers)) <= self._join_bytes:
            self._transport.write(b"".join(buffers))
        else:
            for buffer in buffers:  # asyncio's writelines would join them first
                self._transport.write(buffer)
        return correlation_id

    def _take(self, frame: memoryview) -> None:
        if len(frame) < 4:
            raise ProtocolError(f"a response of {len(frame)} bytes")
        correlation_id = int.from_bytes(frame[:4])
        waiting = self._waiting.pop(correlation_id, None)
        if waiting is None:
            raise ProtocolError(f"a response with unknown correlation id {correlation_id}")
        if waiting.timer is not None:
            waiting.timer.cancel()
        if waiting.answer.done():  # timed out or cancelled
            return
        try:
            answer = decode_response(waiting.request, _version_of(waiting, frame), correlation_id, frame)
        except ProtocolError as broken:
            waiting.answer.set_exception(self._not_understood(broken))
            raise
        self._has_answered = bool(self._versions)
        waiting.answer.set_result(answer)

    def _timed_out(self, correlation_id: int) -> None:
        waiting = self._waiting[correlation_id]
        waiting.timer = None  # a late response is still matched by its correlation id
        if not waiting.answer.done():
            waited = f"{waiting.timeout_s * 1000:.0f} ms"
            message = f"{self.address} did not answer {waiting.request.API} within {waited}"
            waiting.answer.set_exception(RequestTimedOut(message))
        if waiting.timeout_s >= self._timeout_s and self._received == waiting.received_before:
            # No bytes at all in that time: the broker or the network is gone.
            self.close(ConnectionLost(f"{self.address} has been silent for {waiting.timeout_s * 1000:.0f} ms"))

    def _finish(self, reason: ClientError) -> None:
        if self._end is not None:
            return
        self._end = reason
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            if each.timer is not None:
                each.timer.cancel()
            if not each.answer.done():
                each.answer.set_exception(self._ended(each.request.API))
        self.resume_writing()

    def _ended(self, api: Api) -> ClientError:
        """The error of an unanswered request; a new one for each, so that they do not share a traceback."""
        end = self._end
        if isinstance(end, ClientClosed):
            return ClientClosed(str(end))
        kind = type(end) if isinstance(end, BrokerUnavailable | AuthenticationFailed) else ConnectionLost
        return kind(f"{end} ({api.name} was not answered)")

    def _why_lost(self, error: Exception | None) -> ClientError:
        if isinstance(error, ssl.SSLError):
            what = f"{self.address} rejected the client certificate, or requires one: {error}"
            return AuthenticationFailed(f"{what}; check cert_file")
        why = "the broker closed it" if error is None else str(error) or type(error).__name__
        if not self._has_answered:
            wanted = "TLS, a client certificate or authentication may be required; see `security`"
            why = f"{why} ({wanted})"
        return ConnectionLost(f"the connection to {self.address} is lost: {why}")

    def _not_understood(self, broken: ProtocolError) -> ClientError:
        if not self._versions:
            return NotKafka(f"{self.address} does not speak the Kafka protocol: {broken}")
        return ConnectionLost(f"{self.address} violated the protocol: {broken}")

    def _why_not(self, api: Api, low: int, high: int, max_version: int | None) -> str:
        if high < 0:
            return f"{self.address} does not support {api.name}; use a newer broker"
        last = api.last if max_version is None else min(api.last, max_version)
        return f"{self.address} supports {api.name} versions {low} to {high}; this client needs {api.first} to {last}"


def _version_of(waiting: _Waiting, frame: memoryview) -> int:
    # A broker that does not support the version of an ApiVersions request answers in version 0 (KIP-511).
    if waiting.request.API is API_VERSIONS and int.from_bytes(frame[4:6]) == ErrorCode.UNSUPPORTED_VERSION:
        return 0
    return waiting.version
