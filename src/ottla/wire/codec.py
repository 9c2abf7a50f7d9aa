"""Encoding and decoding of messages, for brokers and clients.

    broker                                          client
    header = read_request_header(frame)             buffers = encode_request(request, version, 7, "me")
    request = decode_request(header, frame)         …
    buffers = encode_response(header, response)     response = decode_response(request, version, 7, frame)

Codecs are created when first needed and cached. A field that the version lacks is silently omitted: a
handler fills in all fields regardless of the client's version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ottla.core.errors import ProtocolError
from ottla.wire.apis import (
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    request_type,
)
from ottla.wire.declare import Request, Response
from ottla.wire.header import begin_request, has_tags_in_response_header, read_response_header

try:
    from ottla.wire import plans as compiler
except ImportError:  # no compiled reader and writer: the same codecs as generated Python
    from ottla.wire import compiler  # type: ignore[no-redef]

if TYPE_CHECKING:
    from ottla.wire.apis import Api
    from ottla.wire.compiler import Decoder, Encoder, Responder
    from ottla.wire.declare import AnyBytes, Sendable
    from ottla.wire.header import RequestHeader

ApiMessageT = TypeVar("ApiMessageT", bound=Request | Response)
ResponseT = TypeVar("ResponseT", bound=Response)
ResponseT_co = TypeVar("ResponseT_co", bound=Response, covariant=True)

MOST_ENTRIES_IN_A_BULK_REQUEST: Final = 60_000
"""Limit of array entries and tagged fields, for APIs that list all partitions of a client at once."""
MOST_ENTRIES_IN_A_REQUEST: Final = 20_000
"""Limit of array entries and tagged fields, for all other APIs."""
_BULK: Final = frozenset(
    {PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, OFFSET_FOR_LEADER_EPOCH, TXN_OFFSET_COMMIT}
)
MOST_ENTRIES_IN_A_RESPONSE: Final = 50_000_000

_request_decoders: dict[tuple[int, int], Decoder[Request]] = {}
_responders: dict[tuple[type[Response], int], Responder[Any]] = {}
_request_encoders: dict[tuple[type[Request], int], Encoder[Any]] = {}
_response_decoders: dict[tuple[type[Response], int], Decoder[Any]] = {}


class RequestFor(Protocol[ResponseT_co]):
    """A request with a typed response."""

    @property
    def API(self) -> Api: ...  # noqa: N802
    @property
    def RESPONSE(self) -> type[ResponseT_co]: ...  # noqa: N802


def decode_request(header: RequestHeader, frame: memoryview) -> Request:
    """Decode the request after the header. Records are slices of the frame."""
    key = header.api.key, header.version
    decode = _request_decoders.get(key)
    if decode is None:
        decode = _request_decoders[key] = decoder(request_type(header.api), header.version)
    return decode(frame, header.body_at)


def encode_response(header: RequestHeader, response: Response, *, version: int | None = None) -> list[Sendable]:
    """Encode a complete frame, as buffers to send; in `version` if given."""
    key = type(response), header.version if version is None else version
    found = _responders.get(key)
    if found is None:
        found = _responders[key] = _responder(*key)
    return found(response, header.correlation_id)


def encode_request(request: Request, version: int, correlation_id: int, client_id: str | None) -> list[AnyBytes]:
    """Encode a complete frame, as buffers to send."""
    key = type(request), version
    encode = _request_encoders.get(key)
    if encode is None:
        encode = _request_encoders[key] = _framer(*key)
    return encode(request, begin_request(request.API, version, correlation_id, client_id))


def decode_response(request: RequestFor[ResponseT], version: int, correlation_id: int, frame: memoryview) -> ResponseT:
    """Decode the response to a request of this version and correlation id."""
    answered, position = read_response_header(request.API, version, frame)
    if answered != correlation_id:
        raise ProtocolError(f"the response to {request.API} has correlation id {answered} instead of {correlation_id}")
    key = request.RESPONSE, version
    decode: Decoder[ResponseT] | None = _response_decoders.get(key)
    if decode is None:
        decode = _response_decoders[key] = decoder(*key)
    return decode(frame, position)


def decoder(message: type[ApiMessageT], version: int) -> Decoder[ApiMessageT]:
    """Create a decoder for the part after the header."""
    if problem := _problem(message.API, version):
        raise ProtocolError(problem)
    room = most_entries(message.API) if issubclass(message, Request) else MOST_ENTRIES_IN_A_RESPONSE
    return compiler.compile_decoder(message, version, is_flexible=message.API.is_flexible(version), room=room)


def most_entries(api: Api) -> int:
    return MOST_ENTRIES_IN_A_BULK_REQUEST if api in _BULK else MOST_ENTRIES_IN_A_REQUEST


def _framer(message: type[ApiMessageT], version: int) -> Encoder[ApiMessageT]:
    if problem := _problem(message.API, version):
        raise ValueError(problem)
    return compiler.compile_framer(message, version, is_flexible=message.API.is_flexible(version))


def _responder(response: type[ResponseT], version: int) -> Responder[ResponseT]:
    if problem := _problem(response.API, version):
        raise ValueError(problem)
    return compiler.compile_responder(
        response,
        version,
        is_flexible=response.API.is_flexible(version),
        has_header_tags=has_tags_in_response_header(response.API, version),
    )


def _problem(api: Api, version: int) -> str | None:
    return None if api.speaks(version) else f"{api} version {version} is not supported ({api.first} to {api.last})"
