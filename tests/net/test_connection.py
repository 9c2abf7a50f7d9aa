"""Requests of a connection are answered one at a time and in order."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from .serving import Client, Obedient, frame, listening, until

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ottla.net.connection import Connection

    Run = Callable[[Coroutine[Any, Any, None]], None]


def test_a_hundred_requests_in_one_write_are_answered_in_order(run: Run) -> None:
    async def scenario() -> None:
        async with listening(Obedient()) as listener:
            client = await Client.to(listener)
            await client.send(b"".join(frame(b"request %d" % number) for number in range(100)))

            assert [await client.receive() for _ in range(100)] == [b"request %d" % number for number in range(100)]

    run(scenario())


def test_a_slow_response_is_not_overtaken(run: Run) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind) as listener:
            client = await Client.to(listener)
            payloads = [b"first", b"later 1", b"nothing", b"second", b"later 2", b"parts abc", b"third"]
            await client.send(b"".join(map(frame, payloads)))
            assert await client.receive() == b"first"
            await until(lambda: behind.under_way == 1)
            assert behind.asked == [b"first", b"later 1"]

            behind.go_on.set()

            answers = [b"later 1", b"second", b"later 2", b"abc", b"third"]
            assert [await client.receive() for _ in answers] == answers
            assert behind.most_under_way == 1

    run(scenario())


def test_a_delayed_request_without_a_response_lets_the_next_one_pass(run: Run) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind) as listener:
            client = await Client.to(listener)
            await client.send(frame(b"later-nothing") + frame(b"next"))
            await until(lambda: behind.under_way == 1)
            behind.go_on.set()
            assert await client.receive() == b"next"

    run(scenario())


def test_requests_before_a_malformed_frame_are_answered_before_the_close(run: Run) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind) as listener:
            for before in ([b"one"], [b"one", b"later two", b"three"], []):
                client = await Client.to(listener)
                await client.send(b"".join(map(frame, before)) + b"\xff\xff\xff\xff")
                behind.go_on.set()
                assert await client.read_to_the_end() == b"".join(map(frame, before))
            assert listener.counts["bad request"] == 3

    run(scenario())


def test_a_malformed_frame_waits_for_earlier_requests_of_another_read(run: Run) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind) as listener:
            client = await Client.to(listener)
            await client.send(frame(b"later one"))
            await until(lambda: behind.under_way == 1)
            await client.send(frame(b"two") + b"\x7f\xff\xff\xff")
            await until(lambda: listener.counts["bad request"] == 1)
            behind.go_on.set()
            assert await client.read_to_the_end() == frame(b"later one") + frame(b"two")

    run(scenario())


def test_connections_do_not_wait_for_each_other(run: Run) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind) as listener:
            waiting = [await Client.to(listener) for _ in range(10)]
            for client in waiting:
                await client.send(frame(b"later"))
            other = await Client.to(listener)
            assert await other.ask(b"hello") == b"hello"
            await until(lambda: behind.under_way == 10)
            assert await other.ask(b"hello again") == b"hello again"
            behind.go_on.set()
            for client in waiting:
                assert await client.receive() == b"later"

    run(scenario())


def test_requests_may_arrive_one_byte_at_a_time(run: Run) -> None:
    async def scenario() -> None:
        async with listening(Obedient()) as listener:
            client = await Client.to(listener)
            for byte in frame(b"letter by letter") + frame(b"twice"):
                await client.send(bytes([byte]))
                await asyncio.sleep(0)
            assert await client.receive() == b"letter by letter"
            assert await client.receive() == b"twice"

    run(scenario())


def test_a_request_larger_than_any_buffer_is_received_whole(run: Run) -> None:
    async def scenario() -> None:
        async with listening(Obedient()) as listener:
            client = await Client.to(listener)
            large = bytes(range(256)) * (40 << 10)
            sending = asyncio.create_task(client.send(frame(large) + frame(b"small")))
            assert await client.receive() == large
            assert await client.receive() == b"small"
            await sending

    run(scenario())


def test_a_flood_of_requests_from_one_client_does_not_starve_others(run: Run) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind) as listener:
            flood, other = await Client.to(listener), await Client.to(listener)
            await flood.send(frame(b"later"))
            await until(lambda: behind.under_way == 1)
            await flood.send(frame(b"nothing") * 1000)
            await other.send(frame(b"other"))
            await until(lambda: len(behind.asked) == 2)
            behind.go_on.set()
            await flood.receive()
            assert await other.receive() == b"other"

            await flood.send(frame(b"nothing") * 1000 + frame(b"end"))
            await other.send(frame(b"other"))
            await flood.receive()
            assert await other.receive() == b"other"
            assert behind.asked.index(b"other", 2) < behind.asked.index(b"end")

    run(scenario())


# Disconnects


@pytest.mark.parametrize("way", ["close", "reset"])
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\x00",
        frame(b"half a request")[:9],
        frame(b"later"),
        frame(b"later") * 3,
        frame(b"later") + frame(b"half")[:5],
        frame(b"large 4000000") * 3,
        frame(b"later-bug"),
    ],
    ids=["nothing", "half-a-size", "half-a-request", "waiting", "ahead", "waiting-and-half", "unread", "bug"],
)
def test_the_state_of_a_disconnected_client_is_freed(run: Run, way: str, sent: bytes) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind) as listener:
            client = await Client.to(listener)
            await client.send(sent)
            waits = int(sent.startswith(frame(b"later")))
            await until(lambda: len(listener.connections) == 1 and behind.under_way == waits)
            getattr(client, way)()
            await until(lambda: not listener.connections)

            assert len(behind.gone) == 1
            await until(lambda: behind.under_way == 0)
            assert behind.cancelled == waits
            assert listener.held.unsent_bytes == 0
            other = await Client.to(listener)
            assert await other.ask(b"still there?") == b"still there?"

    run(scenario())


def test_a_handler_that_fails_while_it_is_cancelled_is_reported_and_retrieved(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    class Stubborn(Obedient):
        async def _later(self, what: bytes | None) -> list[Any] | None:
            try:
                return await super()._later(what)
            except asyncio.CancelledError:
                raise ValueError("while cleaning up") from None

    async def scenario() -> None:
        behind = Stubborn()
        async with listening(behind) as listener:
            client = await Client.to(listener)
            await client.send(frame(b"later"))
            await until(lambda: behind.under_way == 1)
            client.close()
            await until(lambda: listener.counts["failed"] == 1)

    run(scenario())
    assert "internal error while answering" in caplog.text


def test_a_client_that_disconnects_at_once_leaves_no_unstarted_coroutine(run: Run) -> None:
    class Hasty(Obedient):
        def answer(self, connection: Connection, data: memoryview) -> Any:
            connection.abort()  # so that it is gone before the response is awaited
            inner = self._later(bytes(data))

            async def outer() -> list[Any] | None:
                return await inner

            return outer()

    async def scenario() -> None:
        behind = Hasty()
        async with listening(behind) as listener:
            client = await Client.to(listener)
            await client.send(frame(b"later"))
            await until(lambda: behind.cancelled == 1)

    run(scenario())


# Internal errors and bad requests


@pytest.mark.parametrize("word", [b"bug", b"later-bug"])
def test_an_internal_error_closes_one_connection_and_is_logged_once_with_a_traceback(
    run: Run, caplog: pytest.LogCaptureFixture, word: bytes
) -> None:
    async def scenario() -> None:
        behind = Obedient()
        behind.go_on.set()
        async with listening(behind) as listener:
            other = await Client.to(listener)
            for _ in range(3):
                client = await Client.to(listener)
                await client.send(frame(b"before") + frame(word) + frame(b"after"))
                assert await client.read_to_the_end() == frame(b"before")
            assert listener.counts["failed"] == 3
            assert b"after" not in behind.asked
            assert await other.ask(b"hello") == b"hello"

    run(scenario())
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert errors[0].exc_info is not None


@pytest.mark.parametrize("word", [b"bad", b"later-bad"])
def test_a_bad_request_closes_the_connection_after_earlier_responses(
    run: Run, caplog: pytest.LogCaptureFixture, word: bytes
) -> None:
    async def scenario() -> None:
        behind = Obedient()
        behind.go_on.set()
        async with listening(behind) as listener:
            for _ in range(3):
                client = await Client.to(listener)
                await client.send(frame(b"before") + frame(word) + frame(b"after"))
                assert await client.read_to_the_end() == frame(b"before")
            assert listener.counts["bad request"] == 3
            assert b"after" not in behind.asked

    run(scenario())
    assert caplog.text.count("bad request from 127.0.0.1") == 1
    assert "this is bad" in caplog.text
