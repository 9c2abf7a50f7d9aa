"""Bytes of other protocols close the connection, are counted, and are logged once with the peer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .serving import Client, Obedient, frame, listening

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Run = Callable[[Coroutine[Any, Any, None]], None]

FOREIGN = {
    "tls": (bytes.fromhex("160301020001 0001fc0303") + bytes(500), "this looks like TLS on a plaintext port"),
    "http": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "this looks like HTTP on the Kafka port"),
    "post": (b"POST /topics HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "this looks like HTTP on the Kafka port"),
    "http2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "this looks like HTTP on the Kafka port"),
    "ssh": (b"SSH-2.0-OpenSSH_9.6\r\n", "this looks like SSH on the Kafka port"),
    "garbage": (b"\xff\xfe\xfd\xfc garbage", "invalid frame size -66052"),
    "negative": (b"\xff\xff\xff\xff", "invalid frame size -1"),
    "most-negative": (b"\x80\x00\x00\x00", "invalid frame size -2147483648"),
    "two-gigabytes": (b"\x7f\xff\xff\xff", "frame size 2147483647 exceeds the maximum of 104857600"),
    "just-too-large": ((100 * 1024 * 1024 + 1).to_bytes(4, "big"), "frame size 104857601"),
}


@pytest.mark.parametrize(("sent", "reason"), FOREIGN.values(), ids=FOREIGN)
def test_other_protocols_are_recognized_and_refused(
    run: Run, caplog: pytest.LogCaptureFixture, sent: bytes, reason: str
) -> None:
    async def scenario() -> None:
        behind = Obedient()
        async with listening(behind) as listener:
            other = await Client.to(listener)
            for _ in range(3):
                client = await Client.to(listener)
                await client.send(sent)
                assert await client.read_to_the_end() == b""
            assert listener.counts["bad request"] == 3
            assert behind.asked == []
            assert await other.ask(b"hello") == b"hello"

    run(scenario())
    assert caplog.text.count("bad request from 127.0.0.1:") == 1
    assert reason in caplog.text


def test_a_bad_frame_after_good_ones_is_refused_too(run: Run) -> None:
    async def scenario() -> None:
        async with listening(Obedient(), max_frame_bytes=1000) as listener:
            client = await Client.to(listener)
            assert await client.ask(bytes(1000)) == bytes(1000)
            await client.send(frame(bytes(1001)))
            assert await client.read_to_the_end() == b""
            assert listener.counts["bad request"] == 1

    run(scenario())


def test_an_empty_frame_is_passed_to_the_handler(run: Run) -> None:
    async def scenario() -> None:
        async with listening(Obedient()) as listener:
            client = await Client.to(listener)
            assert await client.ask(b"") == b""

    run(scenario())
