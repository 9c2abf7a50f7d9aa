"""The DMQP wire format: a header of twelve bytes, big-endian, then the payload.

0  u32  sequence id     of a request: the number a PUSH should get, 0 for the next one; of a reply: its message's
4  u32  length          of the payload alone
8  u16  method
10 i16  status code     a Linux errno; 0 in requests

Replies are sent in the order of the requests, without a correlation id.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple

HEADER: Final = struct.Struct(">IIHh")
HEADER_BYTES: Final = HEADER.size
MAX_PAYLOAD_BYTES: Final = 1 << 20
SEQUENCE_MASK: Final = (1 << 32) - 1
"""Sequence ids are counted in 64 bits and sent in 32."""


class Method(IntEnum):
    PUSH = 0
    POP = 1
    PEEK_SEQUENCE_ID = 2
    RESPONSE = 3


class Status(IntEnum):
    """Linux error numbers, on any system."""

    OK = 0
    EIO = 5
    EACCES = 13
    EINVAL = 22
    ENOSYS = 38
    ENODATA = 61
    EPROTO = 71
    EMSGSIZE = 90


class Frame(NamedTuple):
    sequence_id: int
    method: int
    status: int
    payload: bytes


class TooLong(Exception):
    """A header announces a payload that is too large. Frames before it are in `complete`."""

    def __init__(self, length: int, complete: list[Frame]) -> None:
        super().__init__(f"payload of {length} bytes exceeds the maximum of {MAX_PAYLOAD_BYTES}")
        self.complete = complete


def encode(sequence_id: int, method: int, status: int, payload: bytes = b"") -> bytes:
    return HEADER.pack(sequence_id & SEQUENCE_MASK, len(payload), method, status) + payload


def reply(status: int, sequence_id: int = 0, payload: bytes = b"") -> bytes:
    return HEADER.pack(sequence_id & SEQUENCE_MASK, len(payload), Method.RESPONSE, status) + payload


def status_of(reply: bytes) -> int:
    status: int = HEADER.unpack_from(reply)[3]
    return status


class FrameParser:
    """Bytes in, complete frames out."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def pending_bytes(self) -> int:
        """The size of the incomplete frame."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[Frame]:
        buffer = self._buffer
        buffer += data
        frames: list[Frame] = []
        at = 0
        while len(buffer) - at >= HEADER_BYTES:
            sequence_id, length, method, status = HEADER.unpack_from(buffer, at)
            if length > MAX_PAYLOAD_BYTES:
                buffer.clear()
                raise TooLong(length, frames)
            end = at + HEADER_BYTES + length
            if len(buffer) < end:
                break
            frames.append(Frame(sequence_id, method, status, bytes(buffer[at + HEADER_BYTES : end])))
            at = end
        del buffer[:at]
        return frames
