"""Whatever a broker sends, a request ends with a response or a client error."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from ottla.client.config import ClientConfig
from ottla.client.connection import Connection
from ottla.client.errors import ClientError
from ottla.core.ids import Address
from ottla.wire.apis import APIS
from ottla.wire.declare import Response
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest

from .running import run

REQUESTS = (
    MetadataRequest(topics=None),
    FindCoordinatorRequest(key="g", coordinator_keys=("g",)),
    FetchRequest(max_wait_ms=1, min_bytes=1, max_bytes=1, session_id=0, session_epoch=-1, topics=()),
    ApiVersionsRequest(),
)
SIZE = 4


class Silent(asyncio.Transport):
    """Reads everything and never responds."""

    def __init__(self) -> None:
        self.is_aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(SIZE) + body


def receive(connection: Connection, data: bytes) -> None:
    """Feed the bytes in pieces, as an event loop would."""
    while data and connection.is_open:
        buffer = connection.get_buffer(-1)
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        data = data[count:]
        connection.buffer_updated(count)


async def outcomes(sent: bytes, *, is_greeted: bool) -> list[Response | BaseException]:
    connection = Connection(Address("h", 1), ClientConfig(deserializer_chunk_bytes=256))
    connection.connection_made(Silent())
    if is_greeted:
        connection.greeted({key: (api.first, api.last) for key, api in APIS.items()}, {})
    asked = [connection.ask(request, version=request.API.last) for request in REQUESTS]
    receive(connection, sent)
    connection.connection_lost(None)
    return await asyncio.gather(*asked, return_exceptions=True)


def are_fair(results: list[Response | BaseException]) -> bool:
    return all(isinstance(result, Response | ClientError) for result in results)


@given(st.binary(max_size=2000), st.booleans())
def test_random_bytes_end_in_a_client_error(sent: bytes, is_greeted: bool) -> None:  # noqa: FBT001
    assert are_fair(run(outcomes(sent, is_greeted=is_greeted)))


@given(st.lists(st.tuples(st.integers(1, len(REQUESTS)), st.binary(max_size=300)), max_size=6))
def test_random_bodies_with_the_right_correlation_id_end_in_a_client_error(answers: list[tuple[int, bytes]]) -> None:
    sent = b"".join(framed(number.to_bytes(SIZE) + body) for number, body in answers)
    assert are_fair(run(outcomes(sent, is_greeted=True)))
