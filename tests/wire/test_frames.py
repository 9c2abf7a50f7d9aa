"""Any split of the bytes gives the same frames; hostile sizes are refused before their body arrives."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.frame import DEFAULT_MAX_FRAME_BYTES, SCRATCH_BYTES, BrokenFrame, FrameParser

LARGE = 300_000


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def received(parser: FrameParser, data: bytes, most: int = SCRATCH_BYTES) -> list[memoryview]:
    """The frames from a socket that delivers at most `most` bytes at a time."""
    frames: list[memoryview] = []
    while data:
        buffer = memoryview(parser.get_buffer())
        count = min(len(buffer), len(data), most)
        buffer[:count] = data[:count]
        frames += parser.buffer_updated(count)
        data = data[count:]
    return frames


@settings(derandomize=True, database=None, deadline=None, max_examples=150)
@given(
    sizes=st.lists(st.sampled_from((0, 1, 3, 4, 100, 70_000, 200_000)), max_size=6),
    steps=st.lists(st.sampled_from((1, 2, 3, 4, 5, 99, 1000, 65_536, 100_000)), min_size=1, max_size=8),
    is_fed=st.booleans(),
)
def test_any_split_gives_the_same_frames(sizes: list[int], steps: list[int], is_fed: bool) -> None:
    bodies = [bytes([index + 1]) * size for index, size in enumerate(sizes)]
    stream = framed(*bodies)
    parser = FrameParser()
    frames: list[memoryview] = []
    turn = 0
    while stream:
        step = steps[turn % len(steps)] if turn < 50 else len(stream)
        turn += 1
        piece, stream = stream[:step], stream[step:]
        frames += parser.feed(piece) if is_fed else received(parser, piece)
    assert frames == bodies
    assert parser.pending_bytes == 0


def test_one_byte_at_a_time_is_enough() -> None:
    parser = FrameParser()
    stream = framed(b"ab", b"", b"c")
    frames = [frame for byte in stream for frame in parser.feed(bytes([byte]))]
    assert frames == [b"ab", b"", b"c"]


def test_frames_are_writable_and_outlive_the_next_read() -> None:
    parser = FrameParser()
    first, second = received(parser, framed(b"first", b"second"))
    first[0] = ord("F")
    received(parser, framed(b"x" * 100))
    assert (bytes(first), bytes(second)) == (b"First", b"second")
    [large] = received(parser, framed(b"y" * LARGE))
    assert not large.readonly


def test_connections_can_share_one_scratch_buffer() -> None:
    scratch = bytearray(1000)
    ann, bob = FrameParser(scratch=scratch), FrameParser(scratch=scratch)
    from_ann, from_bob = framed(b"a" * 50), framed(b"b" * 50)
    assert received(ann, from_ann[:20]) == []
    assert received(bob, from_bob[:30]) == []
    assert received(ann, from_ann[20:]) == [b"a" * 50]
    assert received(bob, from_bob[30:]) == [b"b" * 50]


def test_the_rest_of_a_large_frame_is_received_in_place() -> None:
    parser = FrameParser()
    stream = framed(b"z" * LARGE)
    received(parser, stream[:70_000])
    buffer = parser.get_buffer()
    assert isinstance(buffer, memoryview)
    assert len(buffer) == LARGE + 4 - 70_000
    buffer[:] = stream[70_000:]
    [frame] = parser.buffer_updated(len(buffer))
    assert frame.obj is buffer.obj
    assert frame == b"z" * LARGE


def test_a_trusted_peer_gets_the_announced_memory_at_once() -> None:
    body = bytes(range(256)) * 4000
    trusting, wary = FrameParser(trusted_bytes=2 << 20), FrameParser()
    for parser in (trusting, wary):
        assert parser.feed(framed(body)[:1000]) == []
    assert len(trusting.get_buffer()) == len(framed(body)) - 1000
    assert len(wary.get_buffer()) < len(trusting.get_buffer())
    for parser in (trusting, wary):
        assert received(parser, framed(body)[1000:]) == [body]


def test_a_frame_announced_and_never_sent_takes_no_memory() -> None:
    parser = FrameParser(scratch=bytearray(SCRATCH_BYTES))
    tracemalloc.start()
    try:
        assert received(parser, struct.pack(">i", DEFAULT_MAX_FRAME_BYTES) + bytes(1000)) == []
        parser.get_buffer()
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
    assert parser.pending_bytes == 1004


def test_half_a_size_is_pending_too() -> None:
    parser = FrameParser()
    assert parser.pending_bytes == 0
    parser.feed(b"\0\0")
    assert parser.pending_bytes == 2


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
@pytest.mark.parametrize("before", [[], [b"fine"], [b"fine", b"", b"too"]])
def test_a_hostile_size_is_refused_before_its_body_arrives(size: int, before: list[bytes]) -> None:
    parser = FrameParser(max_frame_bytes=1000)
    with pytest.raises(BrokenFrame, match=f"frame size {size}") as broken:
        parser.feed(framed(*before) + struct.pack(">i", size))
    assert broken.value.complete == before


def test_a_hostile_size_is_refused_in_whatever_pieces_it_comes() -> None:
    parser = FrameParser(max_frame_bytes=1000)
    assert parser.feed(framed(b"fine") + b"\x7f\xff") == [b"fine"]
    with pytest.raises(BrokenFrame, match="frame size 2147483647 exceeds the maximum of 1000"):
        parser.feed(b"\xff\xff")


def test_a_frame_of_exactly_the_limit_passes() -> None:
    assert FrameParser(max_frame_bytes=10).feed(framed(b"0123456789")) == [b"0123456789"]


@pytest.mark.parametrize(
    ("first_bytes", "guess"),
    [
        (bytes.fromhex("1603010200010001fc0303"), "TLS on a plaintext port"),
        (bytes.fromhex("15030300020246"), "TLS on a plaintext port"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"),
        (b"POST /topics HTTP/1.1\r\n", "HTTP"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH"),
        (b"AMQP\0\0\x09\x01", "AMQP"),
    ],
)
@pytest.mark.parametrize("limit", [DEFAULT_MAX_FRAME_BYTES, 2**31 - 1])
def test_another_protocol_on_the_port_is_recognised(first_bytes: bytes, guess: str, limit: int) -> None:
    with pytest.raises(BrokenFrame, match=f"looks like {guess}"):
        FrameParser(max_frame_bytes=limit).feed(first_bytes)
    dripped = FrameParser(max_frame_bytes=limit)
    assert [dripped.feed(first_bytes[at : at + 1]) for at in range(3)] == [[], [], []]
    with pytest.raises(BrokenFrame, match=f"looks like {guess}"):
        dripped.feed(first_bytes[3:])
