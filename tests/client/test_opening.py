"""Opening connections: name resolution, errors, timeouts."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

from ottla.client.addresses import parse_address
from ottla.client.config import ClientConfig
from ottla.client.errors import (
    ConnectFailed,
    NotKafka,
)
from ottla.core.ids import Address

from .connecting import LOCALHOST, METADATA, SOON, close, connect
from .fake_broker import FakeBroker, serving, stranger
from .running import LOOPS, run

if TYPE_CHECKING:
    from collections.abc import Callable

# No server, or another kind of server


def test_a_refused_connection_says_so() -> None:
    with socket.socket() as free:
        free.bind((LOCALHOST, 0))
        address = f"{LOCALHOST}:{free.getsockname()[1]}"
        with pytest.raises(ConnectFailed, match=rf"cannot connect to {address}: Connection refused; check the address"):
            run(connect(address))


def test_an_unresolvable_name_says_so() -> None:
    with pytest.raises(ConnectFailed, match=r"could not resolve 'no-such-host\.invalid'"):
        run(connect("no-such-host.invalid:9092"))


def test_an_invalid_name_says_so() -> None:
    with pytest.raises(ConnectFailed, match="could not resolve"):
        run(connect("a" * 64 + ".example:9092"))


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "looks like HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "looks like TLS"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "looks like SSH"),
        (b"\x8f\x02\xe1\x99\x7a\x05", "does not speak the Kafka protocol"),
        (b"\x7f\x02\xe1\x99\x7a\x05", "does not speak the Kafka protocol"),
        (b"\x00\x00\x00\x06\x00\x00\x00\x01\x00\x00", "does not speak the Kafka protocol"),
        (b"\x00\x00\x00\x04\x00\x00\x03\xe7", "does not speak the Kafka protocol"),
    ],
)
def test_a_server_that_is_not_a_broker_says_so(answer: bytes, complaint: str) -> None:
    async def scenario() -> None:
        async with stranger(answers=answer) as address:
            with pytest.raises(NotKafka, match=complaint):
                await connect(address)

    run(scenario())


def test_a_server_that_closes_the_connection_says_so() -> None:
    async def scenario() -> None:
        async with stranger(answers=b"") as address:
            with pytest.raises(ConnectFailed, match=r"closed the connection on .*TLS.*authentication"):
                await connect(address)

    run(scenario())


def test_a_server_that_speaks_first_is_not_a_broker() -> None:
    async def scenario() -> None:
        async with stranger(b"220 mail.example ESMTP\r\n") as address:
            with pytest.raises(NotKafka, match="does not speak the Kafka protocol"):
                await connect(address, SOON)

    run(scenario())


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_silent_server_times_out(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scenario() -> float:
        async with stranger() as address:
            began = asyncio.get_running_loop().time()
            with pytest.raises(ConnectFailed, match=r"accepted the connection but did not answer .* within \d+ ms"):
                await connect(address, SOON)
            return asyncio.get_running_loop().time() - began

    assert run(scenario(), loop) < 5


# Several addresses


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: Address) -> None:
    """Make every name resolve to these addresses; an address resolves to itself."""
    real = socket.getaddrinfo

    def resolve(host: str, port: int, *rest: int, **named: int) -> list[tuple[object, ...]]:
        if host != "kafka.example":
            return real(host, port, *rest, **named)  # type: ignore[return-value]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", tuple(address)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def test_all_addresses_of_a_name_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker), stranger() as silent, stranger(answers=b"HTTP/1.1 400 no\r\n") as http:
            free = Address(LOCALHOST, 1)
            resolve_to(monkeypatch, free, parse_address(silent), parse_address(http), Address(LOCALHOST, broker.port))
            connection = await connect("kafka.example:9092", ClientConfig(connect_timeout_ms=1200))
            assert str(connection.address) == "kafka.example:9092"
            await close(connection)

    run(scenario())


def test_if_all_addresses_of_a_name_fail_each_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with stranger(answers=b"HTTP/1.1 400 no\r\n") as http:
            resolve_to(monkeypatch, Address(LOCALHOST, 1), parse_address(http))
            with pytest.raises(ConnectFailed) as failed:
                await connect("kafka.example:9092")
            assert "127.0.0.1:1: Connection refused" in str(failed.value)
            assert "looks like HTTP" in str(failed.value)

    run(scenario())


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_ipv6_addresses_work() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        await broker.start(host="::1")
        connection = await connect(f"[::1]:{broker.port}")
        assert (await connection.ask(METADATA)).cluster_id == "fake"
        await close(connection)
        await broker.stop()

    run(scenario())
