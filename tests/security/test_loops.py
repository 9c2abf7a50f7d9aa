"""TLS under both event loops: nothing is lost when data arrives joined or in pieces."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

import pytest
import uvloop
from tests.broker.making import batch

import ottla
from ottla.broker.settings import Settings
from ottla.net.config import NetConfig
from ottla.net.security_config import SecurityConfig
from ottla.wire.codec import encode_request
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

from .certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
REQUESTS = 60
SIZES = (10, 3000, 40_000, 200_000)


def frames() -> list[bytes]:
    made = []
    for number in range(REQUESTS):
        part = PartitionProduceData(index=0, records=batch(bytes(SIZES[number % len(SIZES)])))
        topic = TopicProduceData(name="t", partition_data=(part,))
        request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=(topic,))
        made.append(b"".join(encode_request(request, 9, number, "test")))
    return made


def talk(port: int, context: ssl.SSLContext, step: int) -> list[int]:
    """Pipeline all requests in pieces of this size; returns the correlation ids of the responses."""
    plain = socket.create_connection(("127.0.0.1", port), 20)
    with plain, context.wrap_socket(plain, server_hostname="localhost") as tls:
        everything = b"".join(frames())
        for at in range(0, len(everything), step):
            tls.sendall(everything[at : at + step])
        reader = tls.makefile("rb")
        answered = []
        for _ in range(REQUESTS):
            size = int.from_bytes(reader.read(4))
            answered.append(int.from_bytes(reader.read(size)[:4]))
        return answered


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("step", [1 << 20, 5000])
def test_every_request_is_answered_in_order(
    tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop], step: int
) -> None:
    authority = Authority(tmp_path)
    server = authority.server()
    settings = Settings(
        net=NetConfig(listeners=("SSL://127.0.0.1:0",)),
        security=SecurityConfig(cert_file=server.cert, key_file=server.key),
    )
    context = ssl.create_default_context(cafile=str(authority.cert))

    async def scenario() -> list[int]:
        async with ottla.Broker(tmp_path / "data", settings) as broker:
            broker.broker.create_topic("t")
            return await asyncio.to_thread(talk, broker.broker.address.port, context, step)

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(scenario()) == list(range(REQUESTS))
