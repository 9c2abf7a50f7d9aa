"""Peers that are slow, silent, too many or malicious lose their connection, and do not affect others."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from ottla.dmqp.config import DmqpConfig
from ottla.dmqp.frame import MAX_PAYLOAD_BYTES, Method, Status, encode

from .serving import DmqpBroker, RawShard

if TYPE_CHECKING:
    from pathlib import Path

IMPATIENT = DmqpConfig(timeout_ms=300)


def test_a_silent_connection_is_closed(tmp_path: Path) -> None:
    with DmqpBroker(tmp_path, IMPATIENT) as served:
        [port] = served.exposed("jobs")
        with RawShard(port) as shard:
            assert shard.push(b"x").status == Status.OK
            assert shard.is_closed()


def test_an_incomplete_request_times_out(tmp_path: Path) -> None:
    with DmqpBroker(tmp_path, IMPATIENT) as served:
        [port] = served.exposed("jobs")
        with RawShard(port) as shard:
            shard.send(encode(0, Method.PUSH, 0, b"x" * 1000)[:500])
            assert shard.is_closed()
        with RawShard(port) as shard:
            assert shard.pop().status == Status.ENODATA


def test_a_request_that_trickles_in_is_dropped(tmp_path: Path) -> None:
    with DmqpBroker(tmp_path, IMPATIENT) as served:
        [port] = served.exposed("jobs")
        with RawShard(port) as shard:
            shard.socket.settimeout(0.01)
            was_closed = False
            for byte in encode(0, Method.PUSH, 0, b"x" * 1000):
                try:
                    shard.send(bytes([byte]))
                    was_closed = shard.socket.recv(1) == b""
                except TimeoutError:
                    continue
                except ConnectionError:
                    was_closed = True
                if was_closed:
                    break
            assert was_closed


def test_a_client_that_does_not_read_is_closed_and_the_rest_stays_in_the_queue(tmp_path: Path) -> None:
    with DmqpBroker(tmp_path, IMPATIENT) as served:
        [port] = served.exposed("jobs")
        count = 24
        with RawShard(port) as shard:
            for _ in range(count):
                shard.push(b"x" * MAX_PAYLOAD_BYTES)
        with RawShard(port) as greedy:
            greedy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            greedy.send(encode(0, Method.POP, 0) * count)
            with RawShard(port) as other:
                # Clients that read their responses are served meanwhile.
                assert other.pop().status in (Status.OK, Status.ENODATA)
            served.run(_until_gone(served))
        with RawShard(port) as shard:
            # Only messages in flight to the client that did not read were taken.
            assert shard.pop().status == Status.OK


async def _until_gone(served: DmqpBroker) -> None:
    for connection in list(served.server._service.connections):
        await connection.gone


def test_the_number_of_connections_is_limited(tmp_path: Path) -> None:
    with DmqpBroker(tmp_path, DmqpConfig(max_connections=2)) as served:
        [port] = served.exposed("jobs")
        with RawShard(port) as first, RawShard(port) as second:
            assert first.push(b"x").status == second.push(b"x").status == Status.OK
            with RawShard(port) as third:
                assert third.is_closed()
            assert first.pop().status == Status.OK


def test_the_memory_of_all_connections_is_limited(tmp_path: Path) -> None:
    with DmqpBroker(tmp_path, DmqpConfig(max_held_bytes=1_500_000)) as served:
        [port] = served.exposed("jobs")
        half = encode(0, Method.PUSH, 0, bytes(MAX_PAYLOAD_BYTES))[:-1]
        with RawShard(port) as first, RawShard(port) as second:
            first.send(half)
            assert second.push(b"small").status == Status.OK
            with suppress(ConnectionError):
                second.send(half)
            assert second.is_closed()
            first.send(b"\0")
            assert first.receive().status == Status.OK
        assert served.server._service._held_bytes == 0


@pytest.mark.parametrize("seed", range(5))
def test_random_input_does_not_affect_other_clients(served: DmqpBroker, topic: str, seed: int) -> None:
    [port] = served.exposed(topic)
    chance = random.Random(seed)
    with RawShard(port) as honest:
        honest.push(b"honest")
        for _ in range(20):
            with RawShard(port) as hostile:
                # Unknown methods, random lengths, cut off anywhere.
                header = chance.randbytes(8) + b"\0" + bytes([chance.randrange(2, 9)]) + chance.randbytes(2)
                hostile.send(header + chance.randbytes(chance.randrange(200)))
        assert honest.pop().payload == b"honest"
        assert honest.pop().status == Status.ENODATA


def test_many_pipelined_requests_are_all_answered(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    count = 5000
    with RawShard(port) as shard:
        shard.send(encode(0, Method.PUSH, 0, b"x") * count)
        assert [shard.receive().sequence_id for _ in range(count)] == list(range(count))
