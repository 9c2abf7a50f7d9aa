"""Listeners: connection limits, idle connections, shutdown."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from .serving import Client, Obedient, frame, listening, until

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ottla.net.listener import Listener

    Run = Callable[[Coroutine[Any, Any, None]], None]


async def is_refused(client: Client) -> bool:
    return await client.read_to_the_end() == b""


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


# Limits


def test_connections_are_limited_and_accepted_again_when_some_close(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with listening(Obedient(), max_connections=5) as listener:
            clients = [await Client.to(listener) for _ in range(5)]
            for client in clients:
                assert await client.ask(b"hello") == b"hello"
            for _ in range(10):
                assert await is_refused(await Client.to(listener))
            assert listener.counts["too many connections"] == 10
            assert listener.counts["accepted"] == 5

            clients.pop().close()
            await until(lambda: len(listener.connections) == 4)
            another = await Client.to(listener)
            assert await another.ask(b"hello") == b"hello"
            for client in clients:
                assert await client.ask(b"still here") == b"still here"

    run(scenario())
    [warning] = warnings(caplog)
    assert warning.startswith("too many connections from 127.0.0.1:")
    assert warning.endswith("connection closed: the limit is 5")


def test_connections_per_address_are_limited(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with listening(Obedient(), max_connections_per_address=2) as listener:
            for _ in range(2):
                assert await (await Client.to(listener)).ask(b"hello") == b"hello"
            for _ in range(3):
                assert await is_refused(await Client.to(listener))
            elsewhere = [await Client.to(listener, host="127.0.0.2") for _ in range(2)]
            for client in elsewhere:
                assert await client.ask(b"hello") == b"hello"
            assert await is_refused(await Client.to(listener, host="127.0.0.2"))

            elsewhere.pop().close()
            await until(lambda: len(listener.connections) == 3)
            assert await (await Client.to(listener, host="127.0.0.2")).ask(b"hello") == b"hello"
            assert listener.counts["too many connections from one address"] == 4

    run(scenario())
    assert len(warnings(caplog)) == 2  # one for each address


# Idle connections


def test_an_idle_connection_is_closed_but_not_one_that_waits_for_a_response(run: Run) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind, max_idle_ms=80) as listener:
            waiting = await Client.to(listener)
            await waiting.send(frame(b"later"))
            idle = await Client.to(listener)
            assert await idle.ask(b"hello") == b"hello"
            assert await idle.read_to_the_end() == b""
            assert listener.counts["idle"] >= 1

            behind.go_on.set()
            assert await waiting.receive() == b"later"
            # The response counts as activity, however old the request is.
            assert await waiting.ask(b"again") == b"again"

    run(scenario())


def test_a_connection_in_use_is_not_idle(run: Run) -> None:
    async def scenario() -> None:
        async with listening(Obedient(), max_idle_ms=80) as listener:
            client = await Client.to(listener)
            deadline = asyncio.get_running_loop().time() + 0.4
            while asyncio.get_running_loop().time() < deadline:
                assert await client.ask(b"hello") == b"hello"
                await asyncio.sleep(0.01)
            assert listener.counts["idle"] == 0

    run(scenario())


# Stopping


def test_shutdown_answers_received_requests_and_accepts_no_more(run: Run) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind) as listener:
            idle, busy = await Client.to(listener), await Client.to(listener)
            await busy.send(frame(b"later") + frame(b"ahead 1") + frame(b"ahead 2") + frame(b"half")[:5])
            await until(lambda: behind.under_way == 1 and len(listener.connections) == 2)
            stopping = asyncio.create_task(listener.stop(timeout_s=10))
            assert await idle.read_to_the_end() == b""
            await busy.send(b"lf" + frame(b"too late"))
            with pytest.raises(OSError, match=r"refused|[Cc]onnect"):
                await Client.to(listener)

            behind.go_on.set()
            answers = frame(b"later") + frame(b"ahead 1") + frame(b"ahead 2")
            assert await busy.read_to_the_end() == answers
            await stopping
            assert b"too late" not in behind.asked

    run(scenario())


def test_shutdown_waits_up_to_a_limit(run: Run) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind) as listener:
            waiting, unread = await Client.to(listener), await Client.to(listener, receive_buffer=4096)
            await waiting.send(frame(b"later"))
            await unread.send(frame(b"large 8000000"))
            await until(lambda: behind.under_way == 1 and listener.held.unsent_bytes > 0)
            begun = asyncio.get_running_loop().time()
            await listener.stop(timeout_s=0.05)
            assert asyncio.get_running_loop().time() - begun < 2
            assert not listener.connections
            assert behind.cancelled == 1
            assert await waiting.read_to_the_end() == b""

    run(scenario())


def test_shutdown_sends_a_slow_reader_its_last_response(run: Run) -> None:
    async def scenario() -> None:
        async with listening(Obedient()) as listener:
            client = await Client.to(listener, receive_buffer=4096)
            await client.send(frame(b"large 8000000"))
            await until(lambda: listener.held.unsent_bytes > 0)
            stopping = asyncio.create_task(listener.stop(timeout_s=10))
            assert len(await client.read_to_the_end()) == 8_000_004
            await stopping

    run(scenario())


def test_a_listener_stops_twice_and_without_ever_having_started(run: Run) -> None:
    async def scenario() -> None:
        async with listening(Obedient()) as listener:
            await listener.stop()
            await listener.stop()

    run(scenario())


# Many


def test_two_thousand_connections_come_and_go(run: Run) -> None:
    async def come_and_go(listener: Listener, number: int) -> None:
        client = await Client.to(listener)
        if number % 4 == 0:
            assert await client.ask(b"%d" % number) == b"%d" % number
        elif number % 4 == 1:
            await client.send(frame(b"half")[:5])
        (client.reset if number % 2 else client.close)()

    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind) as listener:
            steady = await Client.to(listener)
            for first in range(0, 2000, 200):
                await asyncio.gather(*(come_and_go(listener, number) for number in range(first, first + 200)))
                assert await steady.ask(b"steady") == b"steady"
            await until(lambda: len(listener.connections) == 1)
            assert len(behind.gone) >= 1000  # some were reset before they were accepted
            assert listener.counts["failed"] == 0

    run(scenario())


def test_it_listens_on_ipv6(run: Run) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind, host="::1") as listener:
            reader, writer = await asyncio.open_connection(*listener.address)
            writer.write(frame(b"hello"))
            assert await reader.readexactly(9) == frame(b"hello")
            [connection] = listener.connections
            assert connection.local == ("::1", listener.address.port)
            writer.close()
            await writer.wait_closed()

    run(scenario())
