"""One connection: versions, responses, timeouts, and ways to end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ottla.client.config import ClientConfig
from ottla.client.connection import Connection
from ottla.client.errors import (
    ClientClosed,
    ConnectionLost,
    RequestTimedOut,
    UnsupportedByBroker,
)
from ottla.core.ids import Address
from ottla.wire import apis
from ottla.wire.codec import encode_response
from ottla.wire.header import RequestHeader
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

from .connecting import METADATA, beat, close, connect
from .fake_broker import ALL_VERSIONS, FakeBroker, HangUp, serving
from .running import LOOPS, run

if TYPE_CHECKING:
    from collections.abc import Callable

# Versions


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_it_negotiates_versions_sends_and_closes(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker):
            connection = await connect(broker.address, ClientConfig(client_id="me"))
            assert (await connection.ask(METADATA)).cluster_id == "fake"
            assert broker.client_ids == {"me"}
            assert connection.is_open
            await close(connection)
            assert not connection.is_open

    run(scenario(), loop)


def test_an_older_broker_is_asked_again_in_the_version_it_names() -> None:
    async def scenario() -> list[tuple[str, int]]:
        broker = FakeBroker(versions={**ALL_VERSIONS, apis.API_VERSIONS.key: (0, 2)})
        async with serving(broker):
            await close(await connect(broker.address))
        return broker.asked_versions

    assert run(scenario()) == [("ApiVersions", 4), ("ApiVersions", 2)]


def test_a_very_old_broker_that_names_no_version_is_asked_in_version_0() -> None:
    asked = []

    def greet(_: ApiVersionsRequest) -> bytes:
        number = len(asked)
        asked.append(number)
        error = 35 if number == 0 else 0
        header = RequestHeader(apis.API_VERSIONS, 0, number + 1, None, 0)
        return b"".join(map(bytes, encode_response(header, ApiVersionsResponse(error_code=error, api_keys=()))))

    async def scenario() -> list[tuple[str, int]]:
        broker = FakeBroker({ApiVersionsRequest: greet})
        async with serving(broker):
            await close(await connect(broker.address))
        return broker.asked_versions

    assert run(scenario()) == [("ApiVersions", 4), ("ApiVersions", 0)]


def test_the_highest_version_that_both_speak_is_used() -> None:
    async def scenario() -> None:
        broker = FakeBroker(versions={**ALL_VERSIONS, apis.METADATA.key: (0, 8), apis.FETCH.key: (4, 99)})
        async with serving(broker):
            connection = await connect(broker.address)
            assert connection.version_of(apis.METADATA) == 8
            assert connection.version_of(apis.METADATA, max_version=3) == 3
            assert connection.version_of(apis.FETCH) == apis.FETCH.last
            await connection.ask(METADATA)
            assert broker.asked_versions[-1] == ("Metadata", 8)
            await close(connection)

    run(scenario())


def test_an_unsupported_api_or_version_is_named_with_the_supported_ones() -> None:
    async def scenario() -> None:
        versions = {apis.API_VERSIONS.key: (0, 4), apis.FETCH.key: (0, 3), apis.METADATA.key: (9, 13)}
        broker = FakeBroker(versions=versions)
        async with serving(broker):
            connection = await connect(broker.address)
            with pytest.raises(UnsupportedByBroker, match="does not support Heartbeat; use a newer") as missing:
                await connection.ask(beat(1))
            assert missing.value.api is apis.HEARTBEAT
            with pytest.raises(UnsupportedByBroker, match="supports Fetch versions 0 to 3; this client needs 4 to 18"):
                connection.version_of(apis.FETCH)
            with pytest.raises(UnsupportedByBroker, match="9 to 13; this client needs 0 to 8"):
                connection.version_of(apis.METADATA, max_version=8)
            await close(connection)

    run(scenario())


# Answers


def test_responses_are_matched_to_requests_in_any_order() -> None:
    async def scenario() -> None:
        held: list[bytes] = []
        id_of: dict[int, int] = {}

        def answer(request: HeartbeatRequest) -> bytes:
            number = request.generation_id
            id_of[number] = number + 1  # ApiVersions was the first
            header = RequestHeader(apis.HEARTBEAT, 4, id_of[number], None, 0)
            held.insert(0, b"".join(map(bytes, encode_response(header, HeartbeatResponse(error_code=number)))))
            return b"".join(held) if number == 3 else b""

        broker = FakeBroker({HeartbeatRequest: answer})
        async with serving(broker):
            connection = await connect(broker.address)
            answers = [connection.ask(beat(number)) for number in (1, 2, 3)]
            assert [each.error_code for each in await asyncio.gather(*answers)] == [1, 2, 3]
            assert connection.waiting_count == 0
            await close(connection)

    run(scenario())


def test_requests_arrive_in_the_order_of_the_calls() -> None:
    async def scenario() -> None:
        broker = FakeBroker({HeartbeatRequest: lambda _: HeartbeatResponse(error_code=0)})
        async with serving(broker):
            connection = await connect(broker.address)
            await asyncio.gather(*[connection.ask(beat(number)) for number in range(50)])
            beats = [each.generation_id for each in broker.asked if isinstance(each, HeartbeatRequest)]
            assert beats == list(range(50))
            await close(connection)

    run(scenario())


def test_a_posted_request_expects_no_response() -> None:
    async def scenario() -> None:
        broker = FakeBroker({HeartbeatRequest: lambda _: None})
        async with serving(broker):
            connection = await connect(broker.address)
            connection.post(beat(1))
            assert (await connection.ask(METADATA)).cluster_id == "fake"
            assert broker.count(HeartbeatRequest) == 1
            await close(connection)

    run(scenario())


def test_the_response_to_a_cancelled_request_is_dropped() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker):
            connection = await connect(broker.address)
            connection.ask(METADATA).cancel()
            assert (await connection.ask(METADATA)).cluster_id == "fake"
            await close(connection)

    run(scenario())


class Written(asyncio.Transport):
    """Records the size of each write."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sizes.append(len(data))


@pytest.mark.parametrize(("size", "is_joined"), [(50_000, True), (150_000, False)])
def test_parts_of_a_request_are_joined_up_to_the_configured_size(size: int, is_joined: bool) -> None:  # noqa: FBT001
    async def scenario() -> list[int]:
        connection = Connection(Address("h", 1), ClientConfig(serializer_chunk_bytes=100_000))
        written = Written()
        connection.connection_made(written)
        data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=bytes(size)),))
        request = ProduceRequest(transactional_id=None, acks=0, timeout_ms=1, topic_data=(data,))
        connection.post(request, version=8)
        return written.sizes

    sizes = run(scenario())
    assert sum(sizes) > size
    assert (len(sizes) == 1) == is_joined


def test_the_read_size_is_limited() -> None:
    async def scenario() -> None:
        connection = Connection(Address("h", 1), ClientConfig(deserializer_chunk_bytes=300))
        assert len(connection.get_buffer(-1)) == 300

    run(scenario())


# Time-outs


def test_a_request_times_out_and_its_late_response_is_dropped() -> None:
    async def scenario() -> None:
        go_on = asyncio.Event()

        async def late(_: HeartbeatRequest) -> HeartbeatResponse:
            await go_on.wait()
            return HeartbeatResponse(error_code=0)

        broker = FakeBroker({HeartbeatRequest: late})
        async with serving(broker):
            connection = await connect(broker.address)
            with pytest.raises(RequestTimedOut, match=r"did not answer Heartbeat .* within 20 ms"):
                await connection.ask(beat(1), timeout_s=0.02)
            assert connection.is_open
            go_on.set()
            assert (await connection.ask(METADATA)).cluster_id == "fake"
            await close(connection)

    run(scenario())


def test_a_broker_silent_for_the_whole_request_timeout_is_disconnected() -> None:
    async def scenario() -> None:
        broker = FakeBroker({HeartbeatRequest: lambda _: None})
        async with serving(broker):
            connection = await connect(broker.address, ClientConfig(request_timeout_ms=30))
            first, second = connection.ask(beat(1)), connection.ask(beat(2), timeout_s=60)
            with pytest.raises(RequestTimedOut):
                await first
            with pytest.raises(ConnectionLost, match="has been silent for 30 ms"):
                await second
            await connection.closed

    run(scenario())


# Ends


def test_a_lost_connection_fails_each_request_in_flight() -> None:
    def die(_: HeartbeatRequest) -> None:
        raise HangUp

    async def scenario() -> None:
        broker = FakeBroker({HeartbeatRequest: die})
        async with serving(broker):
            connection = await connect(broker.address)
            asked = [connection.ask(beat(number)) for number in range(3)]
            for failed in await asyncio.gather(*asked, return_exceptions=True):
                assert isinstance(failed, ConnectionLost)
                assert "Heartbeat was not answered" in str(failed)
            with pytest.raises(ConnectionLost):
                await connection.ask(METADATA)
            with pytest.raises(ConnectionLost):
                connection.post(METADATA)
            await connection.closed

    run(scenario())


def test_closing_fails_requests_in_flight_at_once() -> None:
    async def scenario() -> None:
        broker = FakeBroker({HeartbeatRequest: lambda _: None})
        async with serving(broker):
            connection = await connect(broker.address)
            asked = connection.ask(beat(1))
            connection.close(ClientClosed())
            connection.close()
            with pytest.raises(ClientClosed):
                await asked
            with pytest.raises(ClientClosed):
                await connection.ask(METADATA)
            await connection.closed

    run(scenario())


def test_a_full_socket_is_waited_for_but_not_a_lost_one() -> None:
    async def scenario() -> None:
        read_on = asyncio.Event()

        async def wait(_: HeartbeatRequest) -> HeartbeatResponse:
            await read_on.wait()
            return HeartbeatResponse(error_code=0)

        broker = FakeBroker({HeartbeatRequest: wait})
        async with serving(broker):
            connection = await connect(broker.address)
            await connection.drain()
            large = HeartbeatRequest(group_id="g" * 30_000, generation_id=1, member_id="m")
            asked = [connection.ask(large) for _ in range(1000)]
            drained = asyncio.create_task(connection.drain())
            await asyncio.sleep(0)
            assert not drained.done()
            read_on.set()
            await drained
            await asyncio.gather(*asked)

            read_on.clear()
            asked = [connection.ask(large) for _ in range(1000)]
            drained = asyncio.create_task(connection.drain())
            await asyncio.sleep(0)
            assert not drained.done()
            await close(connection)
            await drained
            await asyncio.gather(*asked, return_exceptions=True)
            read_on.set()

    run(scenario())


@pytest.mark.parametrize(
    ("nonsense", "complaint"),
    [
        (b"\x00\x00\x00\x02ab", "a response of 2 bytes"),
        (b"\x00\x00\x00\x04\x00\x00\x03\xe7", "a response with unknown correlation id 999"),
        (b"\x00\x00\x00\x05\x00\x00\x00\x02\xff", "violated the protocol"),
        (b"\xff\xff\xff\xff", "invalid frame size -1"),
    ],
)
def test_a_protocol_violation_closes_the_connection(nonsense: bytes, complaint: str) -> None:
    async def scenario() -> None:
        broker = FakeBroker({HeartbeatRequest: lambda _: nonsense})
        async with serving(broker):
            connection = await connect(broker.address)
            with pytest.raises(ConnectionLost, match=complaint):
                await connection.ask(beat(1))
            await connection.closed

    run(scenario())
