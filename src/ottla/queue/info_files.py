"""The small text files beside the messages: one line each, with semicolon-separated fields.

    Q_info_queue    name;part;crc
    Q_info_push     name;right_edge;count_pushed;crc
    Q_info_pop_C    name;consumer;position;count_popped;part

The CRC-32 is decimal and covers the text before it, including the last semicolon. Only the first line counts: the
files are overwritten in place, and a shorter line leaves the rest of a longer one behind it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fastcrc.crc32 import iso_hdlc as crc32

MAX_LINE_BYTES: Final = 4096
_MAX_U32: Final = 0xFFFF_FFFF
_MAX_U64: Final = 0xFFFF_FFFF_FFFF_FFFF


class PartInfo(NamedTuple):
    right_edge: int
    """The position of the next message."""
    count_pushed: int


class PopInfo(NamedTuple):
    position: int
    count_popped: int
    part: int


def queue_line(name: str, part: int) -> bytes:
    text = f"{name};{part};".encode()
    return b"%b%d\n" % (text, crc32(text))


def pop_line(name: str, consumer: str, info: PopInfo) -> bytes:
    return f"{name};{consumer};{info.position};{info.count_popped};{info.part}\n".encode()


def parse_queue_line(data: bytes, name: str) -> int | None:
    """The part that is written to; None if the line is invalid for this queue."""
    fields = _checked_fields(data, name)
    if fields is None or len(fields) != 1:
        return None
    return _number(fields[0], _MAX_U32)


def parse_push_line(data: bytes, name: str) -> PartInfo | None:
    fields = _checked_fields(data, name)
    if fields is None or len(fields) != 2:
        return None
    right_edge, count = _number(fields[0], _MAX_U64), _number(fields[1], _MAX_U32)
    return None if right_edge is None or count is None else PartInfo(right_edge, count)


def parse_pop_line(data: bytes, name: str, consumer: str) -> PopInfo | None:
    fields = _first_line(data).split(b";")
    if len(fields) != 5 or fields[:2] != [name.encode(), consumer.encode()]:
        return None
    position, count, part = (_number(field, _MAX_U64) for field in fields[2:])
    return None if position is None or count is None or part is None else PopInfo(position, count, part)


def _first_line(data: bytes) -> bytes:
    return data.split(b"\n", 1)[0]


def _checked_fields(data: bytes, name: str) -> list[bytes] | None:
    """The fields between name and checksum, if both are valid."""
    line = _first_line(data)
    text, semicolon, crc = line.rpartition(b";")
    if _number(crc, _MAX_U32) != crc32(text + semicolon):
        return None
    found, *fields = text.split(b";")
    return fields if found == name.encode() else None


def _number(text: bytes, limit: int) -> int | None:
    if not text.isdigit() or len(text) > 20:
        return None
    number = int(text)
    return number if number <= limit else None
