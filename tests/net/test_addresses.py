"""One port on every address of a host."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Any

import pytest

from ottla.core.ids import Address
from ottla.net.addresses import on_one_port

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Run = Callable[[Coroutine[Any, Any, None]], None]

HOSTS = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
"""More addresses than a dual-stack name has; available on every machine."""


async def listen(port: int) -> asyncio.Server:
    return await asyncio.get_running_loop().create_server(asyncio.Protocol, HOSTS, port)


def addresses(server: asyncio.Server) -> list[tuple[str, int]]:
    return sorted(one.getsockname() for one in server.sockets)


def test_a_free_port_is_the_same_on_all_addresses(run: Run) -> None:
    async def scenario() -> None:
        server, address = await on_one_port(listen, 0)
        assert addresses(server) == [(host, address.port) for host in HOSTS]
        assert address.host in HOSTS
        server.close()

    run(scenario())


def test_a_port_that_is_taken_on_another_address_is_not_used(run: Run) -> None:
    async def scenario() -> None:
        asked: list[int] = []
        taken: list[asyncio.Server] = []

        async def listen_and_be_too_late(port: int) -> asyncio.Server:
            asked.append(port)
            if len(asked) == 2:
                loop = asyncio.get_running_loop()
                taken.append(await loop.create_server(asyncio.Protocol, HOSTS[2], port))
            return await listen(port)

        server, address = await on_one_port(listen_and_be_too_late, 0)
        assert asked == [0, asked[1], 0, address.port]
        assert addresses(server) == [(host, address.port) for host in HOSTS]
        assert address.port != asked[1]
        for one in (server, *taken):
            one.close()

    run(scenario())


def test_the_search_for_a_port_is_limited(run: Run) -> None:
    async def scenario() -> None:
        async def always_too_late(port: int) -> asyncio.Server:
            if port:
                raise OSError(errno.EADDRINUSE, "taken")
            return await listen(port)

        with pytest.raises(OSError, match="no port is free on all addresses"):
            await on_one_port(always_too_late, 0)

    run(scenario())


def test_an_explicit_port_is_used_or_refused(run: Run) -> None:
    async def scenario() -> None:
        server, address = await on_one_port(listen, 0)
        with pytest.raises(OSError, match="in use"):
            await on_one_port(listen, address.port)
        server.close()
        await server.wait_closed()
        again, same = await on_one_port(listen, address.port)
        assert same.port == address.port
        again.close()

    run(scenario())


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("127.0.0.1", 9092)) == "127.0.0.1:9092"
