"""One message in a part: a header of 25 bytes, then its body.

| offset | width | |
|---|---|---|
| 0 | 8 | where this header is in the file |
| 8 | 4 | bytes of the body |
| 12 | 4 | `EE FE EF EE` |
| 16 | 4 | the number of the message in its part, from 1 |
| 20 | 1 | `S` text, `O` anything else; `s` and `o` the same, sealed |
| 21 | 4 | CRC-32 of the header, with zeros here, and the body |

Numbers are little-endian.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from fastcrc.crc32 import iso_hdlc as crc32

from ottla.queue.errors import NotReady

if TYPE_CHECKING:
    from ottla.queue.sealing import MessageSeal

HEADER_BYTES: Final = 25
MAGIC: Final = 0xEEEFFEEE
MAGIC_BYTES: Final = MAGIC.to_bytes(4, "little")
MAGIC_OFFSET: Final = 12
MAX_BODY_BYTES: Final = 0x7FFF_FFFF
MAX_NUMBER: Final = 0xFFFF_FFFF
TEXT: Final = ord("S")
OBJECT: Final = ord("O")
SEALED: Final = ord("s") ^ ord("S")
"""Marks an encrypted message type."""

HEADER: Final = Layout("<QIIIBI")
_CRC_OFFSET: Final = 21
_NO_CRC: Final = bytes(4)


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message and its position."""

    body: bytes
    is_text: bool
    part: int
    offset: int
    """Start offset in the part."""
    number: int
    """Its number in the part, from 1."""
    extra_bytes: int = 0
    """The encryption overhead in the part."""

    @property
    def text(self) -> str:
        """The body, decoded as UTF-8."""
        return self.body.decode()

    @property
    def end(self) -> int:
        """Start offset of the next message in the part."""
        return self.offset + HEADER_BYTES + len(self.body) + self.extra_bytes


class Decoded(NamedTuple):
    messages: list[Message]
    is_damaged: bool
    """Whether the following data is corrupt; otherwise it is incomplete."""


def decode(data: bytes, offset: int, part: int, number: int, seal: MessageSeal | None = None) -> Decoded:
    """The intact messages at the start of `data`, which is the part's contents at `offset`.

    `number` is that of the message before.
    """
    messages: list[Message] = []
    at = 0
    size = len(data)
    unpack = HEADER.unpack_from
    while at + HEADER_BYTES <= size:
        start, length, magic, count, kind, crc = unpack(data, at)
        if magic != MAGIC or start != offset + at or count <= number or length > MAX_BODY_BYTES:
            return Decoded(messages, is_damaged=True)
        body_at = at + HEADER_BYTES
        end = body_at + length
        if end > size:
            break
        body = data[body_at:end]
        if crc32(body, crc32(data[at : at + _CRC_OFFSET] + _NO_CRC)) != crc:
            return Decoded(messages, is_damaged=True)
        if kind & SEALED:
            message = _opened(body, kind, (part, start, count), seal)
            if message is None:
                return Decoded(messages, is_damaged=True)
            messages.append(message)
        else:
            messages.append(Message(body, kind != OBJECT, part, start, count))
        number = count
        at = end
    return Decoded(messages, is_damaged=False)


def _opened(body: bytes, kind: int, place: tuple[int, int, int], seal: MessageSeal | None) -> Message | None:
    if seal is None:
        raise NotReady(f"part {place[0]} is encrypted; pass its keys")
    opened = seal.open(kind, body, place)
    return None if opened is None else Message(opened, kind & ~SEALED != OBJECT, *place, len(body) - len(opened))
