"""Raw requests to a real broker, for details that client libraries hide: types, documentation, error codes."""

import socket
import struct
from typing import Any, cast

from ottla.wire.codec import RequestFor, decode_response, encode_request
from ottla.wire.declare import Request, Response

TIMEOUT_S = 60.0
CORRELATION_ID = 1


def ask(bootstrap: str, request: Request, version: int) -> Any:  # noqa: ANN401 - the answer that goes with the request
    host, _, port = bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), TIMEOUT_S) as connection, connection.makefile("rb") as answers:
        connection.sendall(b"".join(encode_request(request, version, CORRELATION_ID, "interop")))
        [size] = struct.unpack(">i", answers.read(4))
        frame = memoryview(bytearray(answers.read(size)))
    return decode_response(cast("RequestFor[Response]", request), version, CORRELATION_ID, frame)
