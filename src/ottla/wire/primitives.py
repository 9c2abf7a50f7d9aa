"""Functions called by generated codecs, for rare paths."""

from __future__ import annotations

from typing import Final

from ottla.core.errors import ProtocolError

MAX_STRING_BYTES: Final = 0x7FFF
"""Kafka also limits compact strings to the range of an int16 length."""

COPIED_RECORD_BYTES: Final = 16 * 1024
"""Up to this size, copying records is cheaper than two more buffers for the socket."""

_MAX_UVARINT_BYTES: Final = 5
_CONTINUES: Final = 0x80


def uvarint_at(data: memoryview, position: int) -> tuple[int, int]:
    """The unsigned varint at a position, and its end."""
    first = data[position]
    return (first, position + 1) if first < _CONTINUES else rest_of_uvarint(data, position + 1, first)


def rest_of_uvarint(data: memoryview, position: int, first: int) -> tuple[int, int]:
    """Finish an unsigned varint with a continuation bit in its first byte."""
    value = first & 0x7F
    for index in range(1, _MAX_UVARINT_BYTES):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << 7 * index
        if byte < _CONTINUES:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise bad_uvarint(position)


def uvarint(value: int) -> bytes:
    encoded = bytearray()
    while value >= _CONTINUES:
        encoded.append(value & 0x7F | _CONTINUES)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def compact_string_length(plus_one: int) -> bytes:
    if plus_one > MAX_STRING_BYTES + 1:
        raise TypeError(f"a string of {plus_one - 1} bytes exceeds {MAX_STRING_BYTES}")
    return uvarint(plus_one)


def exactly(size: int, value: bytes) -> bytes:
    if len(value) != size:
        raise TypeError(f"{value!r} is not {size} bytes")
    return value


def take_tags(what: str, data: memoryview, position: int, count: int, room: int) -> tuple[int, int, int]:
    """Check a count of tagged fields; returns the count, the position of the first, and the remaining room."""
    if count >= _CONTINUES:
        count, position = rest_of_uvarint(data, position, count)
    room -= count
    # A tagged field takes at least two bytes: its number and its size.
    if room < 0 or 2 * count > len(data) - position:
        raise bad_count(what, "tagged fields", count, len(data) - position)
    return count, position, room


def tag_at(what: str, data: memoryview, position: int) -> tuple[int, int, int]:
    """The tagged field at a position: its number, and start and end of its value."""
    number, position = uvarint_at(data, position)
    size, position = uvarint_at(data, position)
    if size > len(data) - position:
        raise bad_length(what, f"tagged field {number}", size, len(data) - position)
    return number, position, position + size


def skip_tags(what: str, data: memoryview, position: int, count: int, room: int) -> tuple[int, int]:
    """Skip unknown tagged fields; returns their end, and the remaining room."""
    count, position, room = take_tags(what, data, position, count, room)
    for _ in range(count):
        _, _, position = tag_at(what, data, position)
    return position, room


def unknown_api(key: int) -> ProtocolError:
    return ProtocolError(f"unknown API key {key}")


def bad_uvarint(position: int) -> ProtocolError:
    return ProtocolError(f"the varint that ends at byte {position} does not fit 32 bits")


def bad_length(what: str, field: str, length: int, left: int) -> ProtocolError:
    if length == -1:
        return ProtocolError(f"{what}: {field} must not be null")
    if length < 0:
        return ProtocolError(f"{what}: {field} has invalid length {length}")
    if length > left:
        return ProtocolError(f"{what}: {field} claims {length} bytes, but only {left} are left")
    return ProtocolError(f"{what}: {field} has {length} bytes, at most {MAX_STRING_BYTES} are allowed")


def bad_count(what: str, field: str, count: int, left: int) -> ProtocolError:
    if count == -1:
        return ProtocolError(f"{what}: {field} must not be null")
    if count < 0:
        return ProtocolError(f"{what}: {field} has invalid count {count}")
    return ProtocolError(f"{what}: {field} claims {count} entries, too many for a message with {left} bytes left")


def bad_tag_size(what: str, field: str, claimed: int, taken: int) -> ProtocolError:
    return ProtocolError(f"{what}: tagged field {field} claims {claimed} bytes but has {taken}")


def ends_early(what: str, end: int) -> ProtocolError:
    return ProtocolError(f"{what}: ends early, after {end} bytes")


def bad_text(what: str, position: int, error: UnicodeDecodeError) -> ProtocolError:
    return ProtocolError(f"{what}: the string at byte {position} is not UTF-8: {error.reason}")


def left_over(what: str, position: int, end: int) -> ProtocolError:
    return ProtocolError(f"{what}: {end - position} bytes left after the last field")


def unencodable(what: str, error: Exception) -> ValueError:
    return ValueError(f"cannot encode {what}: {error}")
