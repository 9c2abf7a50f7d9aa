"""The encoding of schema ids in keys, values and headers: pure rules.

The data is preceded by a zero byte and the id in four bytes, or by a byte of 1 and the GUID in 16 bytes. Alternatively
these bytes are in a header, and the key or value is only the data. In Protobuf the path of the message within its file
follows the id.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ottla.schema.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Part = Literal["key", "value"]
IdPlace = Literal["prefix", "guid", "header"]
Headers = tuple[tuple[str, bytes | None], ...]

HEADERS: Final[dict[Part, str]] = {"key": "__key_schema_id", "value": "__value_schema_id"}
_ID: Final = 0
_GUID: Final = 1
_ID_BYTES: Final = 5
_GUID_BYTES: Final = 17
_MOST_INDEXES: Final = 100
_MOST_SHIFT: Final = 63


class SchemaId(NamedTuple):
    """An id, or a GUID."""

    number: int | None = None
    guid: str | None = None

    def __str__(self) -> str:
        return f"id {self.number}" if self.number is not None else f"GUID {self.guid}"


def id_bytes(number: int) -> bytes:
    return bytes((_ID,)) + number.to_bytes(4)


def guid_bytes(guid: str) -> bytes:
    return bytes((_GUID,)) + uuid.UUID(guid).bytes


def split(data: bytes | None, part: Part, headers: Iterable[tuple[str, bytes | None]] = ()) -> tuple[SchemaId, int]:
    """The id of a key or value, and the position of the data after it: 0 if the id is in a header."""
    wanted = HEADERS[part]
    for name, value in headers:
        if name == wanted and value is not None:
            return _read(value)[0], 0
    return _read(data or b"")


def _read(data: bytes) -> tuple[SchemaId, int]:
    if len(data) >= _ID_BYTES and data[0] == _ID:
        return SchemaId(number=int.from_bytes(data[1:_ID_BYTES])), _ID_BYTES
    if len(data) >= _GUID_BYTES and data[0] == _GUID:
        return SchemaId(guid=str(uuid.UUID(bytes=bytes(data[1:_GUID_BYTES])))), _GUID_BYTES
    begin = data[:_ID_BYTES].hex(" ") or "nothing"
    raise SchemaError(f"no schema id: expected a byte of 0 and four bytes of id, or an id in a header, got {begin}")


def header_indexes(part: Part, headers: Iterable[tuple[str, bytes | None]]) -> bytes | None:
    """The bytes after the id in a header: a Protobuf message's path; None without such a header."""
    for name, value in headers:
        if name == HEADERS[part] and value is not None:
            return value[_read(value)[1] :]
    return None


def index_bytes(indexes: Sequence[int]) -> bytes:
    """The path of a Protobuf message within its file; the first message is one zero byte."""
    if tuple(indexes) == (0,):
        return b"\0"
    return b"".join(map(_varint, (len(indexes), *indexes)))


def read_indexes(data: bytes, at: int = 0) -> tuple[tuple[int, ...], int]:
    """The path at this position, and its end."""
    count, at = _read_varint(data, at)
    if count == 0:
        return (0,), at
    if not 0 < count <= _MOST_INDEXES:
        raise SchemaError(f"malformed Protobuf message indexes: {count} of them")
    found = []
    for _ in range(count):
        index, at = _read_varint(data, at)
        found.append(index)
    return tuple(found), at


def _varint(number: int) -> bytes:
    left = (number << 1) ^ (number >> 63)
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > _MOST_SHIFT:
            raise SchemaError("malformed Protobuf message indexes")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
