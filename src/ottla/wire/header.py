"""Request and response headers.

Request headers: version 1 has the API key, its version, a correlation id and the client id;
version 2, for flexible versions of an API, adds tagged fields. (Version 0, without the client id, belonged to an
API that Kafka 4 removed.) Response headers: version 0 is the correlation id; version 1 adds tagged fields.
"""

from __future__ import annotations

from struct import Struct as Format
from struct import error as struct_error
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ottla.wire.apis import API_VERSIONS, APIS, Api
from ottla.wire.primitives import bad_length, bad_text, ends_early, skip_tags, unknown_api

if TYPE_CHECKING:
    from collections.abc import Callable

_REQUEST: Final = Format(">hhih")
_SIZED_REQUEST: Final = Format(">ihhih")
_RESPONSE: Final = Format(">i")
_MOST_TAGS: Final = 1000
_NEVER: Final = 1 << 15


class RequestHeader(Struct, frozen=True, gc=False):
    api: Api
    version: int
    correlation_id: int
    client_id: str | None
    body_at: int
    """The position of the request body in its frame."""


def read_header_in_python(frame: memoryview) -> RequestHeader:
    position = 0
    try:
        key, version, correlation_id, length = _REQUEST.unpack_from(frame)
        position = _REQUEST.size
        api = APIS.get(key)
        if api is None:
            raise unknown_api(key)
        client_id = None
        if length != -1:
            end = position + length
            if length < 0 or end > len(frame):
                raise bad_length("request header", "client_id", length, len(frame) - position)
            client_id = frame[position:end].tobytes().decode()
            position = end
        if api.is_flexible(version):
            position = _after_tags("request header", frame, position)
    except (IndexError, struct_error):
        raise ends_early("request header", len(frame)) from None
    except UnicodeDecodeError as error:
        raise bad_text("request header", position, error) from None
    return RequestHeader(api, version, correlation_id, client_id, position)


def _header_reader() -> Callable[[memoryview], RequestHeader]:
    try:
        from ottla.wire.reader import HeaderReader
    except ImportError:
        return read_header_in_python
    flexible = {key: (api, _NEVER if api.flexible_since is None else api.flexible_since) for key, api in APIS.items()}
    return HeaderReader(RequestHeader, flexible).read


read_request_header: Final = _header_reader()
"""Read the header of any known API, in any version; support is checked elsewhere."""


def begin_request(api: Api, version: int, correlation_id: int, client_id: str | None) -> bytearray:
    """A frame up to the request body; its size is filled in later."""
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    try:
        head = bytearray(_SIZED_REQUEST.pack(0, api.key, version, correlation_id, length))
    except struct_error as error:
        raise ValueError(f"cannot encode a request header with {correlation_id=}, {client_id=}: {error}") from None
    head += name
    if api.is_flexible(version):
        head.append(0)
    return head


def read_response_header(api: Api, version: int, frame: memoryview) -> tuple[int, int]:
    """The correlation id, and the position of the response body in the frame."""
    try:
        [correlation_id] = _RESPONSE.unpack_from(frame)
        position = _RESPONSE.size
        if has_tags_in_response_header(api, version):
            position = _after_tags("response header", frame, position)
    except (IndexError, struct_error):
        raise ends_early("response header", len(frame)) from None
    return correlation_id, position


def has_tags_in_response_header(api: Api, version: int) -> bool:
    # A client that reads this response does not know the broker's versions yet, so it never changes (KIP-511).
    return api.key != API_VERSIONS.key and api.is_flexible(version)


def _after_tags(what: str, frame: memoryview, position: int) -> int:
    count = frame[position]
    position += 1
    return skip_tags(what, frame, position, count, _MOST_TAGS)[0] if count else position
