"""The protocol byte by byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.dmqp.frame import MAX_PAYLOAD_BYTES, FrameParser, Method, Status, TooLong, encode

from .serving import RawShard

if TYPE_CHECKING:
    from random import Random

    from .serving import DmqpBroker

VECTORS = [
    ("peek, empty queue", "00000000 00000000 0002 0000", "00000000 00000000 0003 003d"),
    ("push out of sequence", "00000001 00000005 0000 0000 68656c6c6f", "00000000 00000000 0003 0016"),
    ("push", "00000000 00000005 0000 0000 68656c6c6f", "00000000 00000000 0003 0000"),
    ("pop", "00000000 00000000 0001 0000", "00000000 00000005 0003 0000 68656c6c6f"),
    ("pop, empty queue", "00000000 00000000 0001 0000", "00000000 00000000 0003 003d"),
    ("a response", "00000000 00000000 0003 0000", "00000000 00000000 0003 0047"),
    ("unknown method 4", "00000000 00000000 0004 0000", "00000000 00000000 0003 0026"),
    ("unknown method 65535", "00000000 00000002 ffff 0000 7070", "00000000 00000000 0003 0026"),
]


def test_requests_get_the_replies_of_the_protocol(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    with RawShard(port) as shard:
        for what, request, reply in VECTORS:
            shard.send(bytes.fromhex(request))
            assert shard._read(len(bytes.fromhex(reply))).hex() == reply.replace(" ", ""), what


def test_pipelined_requests_get_the_same_replies_in_the_same_order(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    with RawShard(port) as shard:
        shard.send(b"".join(bytes.fromhex(request) for _, request, _ in VECTORS))
        expected = b"".join(bytes.fromhex(reply) for _, _, reply in VECTORS)
        assert shard._read(len(expected)) == expected


def test_requests_may_come_byte_by_byte(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    with RawShard(port) as shard:
        for byte in encode(0, Method.PUSH, 0, b"slow"):
            shard.send(bytes([byte]))
        assert shard.receive().status == Status.OK
        assert shard.pop().payload == b"slow"


def test_an_empty_payload_is_a_message(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    with RawShard(port) as shard:
        shard.push(b"first")
        assert shard.push(b"").status == Status.OK
        shard.push(b"third")
        assert [shard.pop().payload for _ in range(3)] == [b"first", b"", b"third"]
        assert shard.pop().status == Status.ENODATA


@pytest.mark.parametrize("spare", [0, 1])
def test_the_largest_payload_is_a_mebibyte(served: DmqpBroker, topic: str, spare: int) -> None:
    [port] = served.exposed(topic)
    payload = bytes(range(256)) * 4096
    with RawShard(port) as shard:
        assert shard.push(payload[spare:]).status == Status.OK
        assert shard.pop().payload == payload[spare:]


def test_a_larger_payload_gets_an_error_and_closes_the_connection(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    with RawShard(port) as shard:
        shard.send(encode(0, Method.PUSH, 0, b"good") + encode(0, Method.PUSH, 0, b"x" * (MAX_PAYLOAD_BYTES + 1)))
        assert shard.receive().status == Status.OK
        assert shard.receive() == (0, Method.RESPONSE, Status.EMSGSIZE, b"")
        assert shard.is_closed()
    with RawShard(port) as shard:
        assert shard.pop().payload == b"good"
        assert shard.pop().status == Status.ENODATA


def test_requests_before_the_end_of_input_are_answered(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    with RawShard(port) as shard:
        shard.send(encode(0, Method.PUSH, 0, b"last words"))
        shard.socket.shutdown(1)
        assert shard.receive().status == Status.OK
        assert shard.is_closed()


@given(st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=40)), max_size=8), st.randoms(use_true_random=False))
def test_frames_do_not_depend_on_how_the_bytes_are_split(asked: list[tuple[int, bytes]], chance: Random) -> None:
    content = b"".join(encode(number, method, 0, payload) for number, (method, payload) in enumerate(asked))
    parser = FrameParser()
    found = []
    while content:
        size = chance.randrange(1, len(content) + 1)
        found += parser.feed(content[:size])
        content = content[size:]
    expected = [(number, method, 0, payload) for number, (method, payload) in enumerate(asked)]
    assert found == expected
    assert parser.pending_bytes == 0


def test_a_parser_keeps_what_came_before_a_length_that_is_too_long() -> None:
    parser = FrameParser()
    good = encode(7, Method.POP, 0)
    with pytest.raises(TooLong) as refused:
        parser.feed(good + bytes.fromhex("00000000 00100001 0000 0000"))
    assert [frame.sequence_id for frame in refused.value.complete] == [7]
    assert parser.pending_bytes == 0
