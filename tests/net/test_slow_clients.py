"""Clients that do not read or send partial requests are closed; memory is bounded, and others are not affected."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from .serving import MIB, Client, Obedient, frame, listening, until

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Run = Callable[[Coroutine[Any, Any, None]], None]


def test_no_more_requests_are_read_from_a_client_that_does_not_read(run: Run) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind) as listener:
            silent, other = await Client.to(listener, receive_buffer=4096), await Client.to(listener)
            await silent.send(frame(b"large 1000000") * 300)
            await until(lambda: listener.held.unsent_bytes > 0)
            answered = len(behind.asked)

            for number in range(100):
                assert await other.ask(b"%d" % number) == b"%d" % number

            # As much as the kernel's buffers hold, and one response that no longer fits.
            assert len(behind.asked) == answered + 100
            assert answered < 10
            assert listener.held.unsent_bytes < 2 * MIB

            for _ in range(answered):
                assert len(await silent.receive()) == 1_000_000
            await until(lambda: len(behind.asked) > answered + 100)

    run(scenario())


def test_pipelined_requests_are_not_read_while_the_first_one_waits(run: Run) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind) as listener:
            client = await Client.to(listener)
            await client.send(frame(b"later"))
            sending = asyncio.create_task(client.send(frame(b"echo " + bytes(100_000)) * 300))
            await until(lambda: behind.under_way == 1 and next(iter(listener.connections)).held_bytes > MIB)
            [connection] = listener.connections
            other = await Client.to(listener)
            for _ in range(100):
                await other.ask(b"meanwhile")
            assert connection.held_bytes < 3 * MIB
            assert not sending.done()

            behind.go_on.set()
            assert await client.receive() == b"later"
            for _ in range(300):
                assert len(await client.receive()) == 100_005
            await sending

    run(scenario())


@pytest.mark.parametrize(
    "sent",
    [b"\x00\x00", frame(b"half a request")[:9], frame(bytes(200_000))[:150_000], frame(b"large 8000000")],
    ids=["half-a-size", "half-a-request", "half-a-large-request", "unread-answer"],
)
def test_a_stalled_client_is_closed_and_those_that_only_wait_are_not(
    run: Run, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind, max_stalled_ms=100) as listener:
            idle, waiting = await Client.to(listener), await Client.to(listener)
            await waiting.send(frame(b"later"))
            stalled = await Client.to(listener, receive_buffer=4096)
            await stalled.send(sent)
            await until(lambda: listener.counts["stalled"] == 1 and len(listener.connections) == 2)

            behind.go_on.set()
            assert await waiting.receive() == b"later"
            assert await idle.ask(b"hello") == b"hello"
            assert listener.held.unsent_bytes == 0

    run(scenario())
    assert "stalled from 127.0.0.1" in caplog.text


def test_a_client_that_trickles_is_stalled_too(run: Run) -> None:
    async def scenario() -> None:
        async with listening(Obedient(), max_stalled_ms=100) as listener:
            client = await Client.to(listener)
            try:
                for byte in frame(bytes(100_000)):
                    await client.send(bytes([byte]))
                    await asyncio.sleep(0.002)
                pytest.fail("it should have been closed")
            except ConnectionError:
                assert listener.counts["stalled"] == 1

    run(scenario())


def test_a_client_that_reads_slowly_but_steadily_is_not_stalled(run: Run) -> None:
    async def scenario() -> None:
        async with listening(Obedient(), max_stalled_ms=400) as listener:
            client = await Client.to(listener, receive_buffer=4096)
            await client.send(frame(b"large 12000000"))
            await until(lambda: listener.held.unsent_bytes > 0)
            begun = asyncio.get_running_loop().time()
            size = 12_000_004
            while size:
                size -= len(await client.read(min(size, 200_000)))
                await asyncio.sleep(0.01)
            assert asyncio.get_running_loop().time() - begun > 0.5
            assert await client.ask(b"hello") == b"hello"
            assert listener.counts["stalled"] == 0

    run(scenario())


def test_a_partial_request_held_back_by_the_broker_is_not_a_stall(run: Run) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind, max_stalled_ms=300) as listener:
            client, stalled = await Client.to(listener), await Client.to(listener)
            await client.send(frame(b"later"))
            await until(lambda: behind.under_way == 1)
            # Enough requests ahead that the last one is only partially read.
            sending = asyncio.create_task(client.send(frame(bytes(90_000)) * 50))
            await stalled.send(b"\x00")
            await until(lambda: listener.counts["stalled"] == 1)
            behind.go_on.set()
            assert await client.receive() == b"later"
            for _ in range(50):
                await client.receive()
            await sending
            assert listener.counts["stalled"] == 1

    run(scenario())


def test_a_closing_connection_whose_last_response_is_not_read_is_aborted(run: Run) -> None:
    async def scenario() -> None:
        async with listening(Obedient(), max_stalled_ms=50) as listener:
            client = await Client.to(listener, receive_buffer=4096)
            await client.send(frame(b"large 8000000") + frame(b"bad"))
            await until(lambda: not listener.connections)
            assert listener.counts["stalled"] == 1

    run(scenario())


def test_the_memory_for_all_slow_readers_is_limited(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with listening(Obedient(), max_held_bytes=20 * MIB) as listener:
            other = await Client.to(listener)
            slow = [await Client.to(listener, receive_buffer=4096) for _ in range(12)]
            for client in slow:
                await client.send(frame(b"large 10000000"))
                assert await other.ask(b"hello") == b"hello"
                assert listener.held.unsent_bytes <= 20 * MIB
            await until(lambda: listener.counts["too much held"] >= 8)
            # The slowest were closed; the latest are served.
            assert len(await slow[-1].receive()) == 10_000_000
            assert len(await slow[0].read_to_the_end()) < 10_000_000

    run(scenario())
    assert caplog.text.count("too much held from 127.0.0.1") == 1


def test_the_memory_for_all_partial_requests_is_limited(run: Run) -> None:
    async def scenario() -> None:
        async with listening(Obedient(), max_held_bytes=20 * MIB) as listener:
            other = await Client.to(listener)
            # Complete requests do not count.
            for _ in range(10):
                assert len(await other.ask(bytes(5 * MIB))) == 5 * MIB
            assert listener.counts["too much held"] == 0
            for _ in range(20):
                client = await Client.to(listener)
                await client.send(frame(bytes(10 * MIB))[: 5 * MIB])
                assert await other.ask(b"hello") == b"hello"
                assert sum(connection.held_bytes for connection in listener.connections) < 26 * MIB
            assert listener.counts["too much held"] >= 16

    run(scenario())


def test_the_announcement_of_a_large_request_takes_no_memory(run: Run) -> None:
    async def scenario() -> None:
        async with listening(Obedient()) as listener:
            clients = [await Client.to(listener) for _ in range(200)]
            for client in clients:
                await client.send((100 * MIB).to_bytes(4, "big") + b"x")
            await until(lambda: sum(connection.held_bytes for connection in listener.connections) == 200 * 5)

    run(scenario())
