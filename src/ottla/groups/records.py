"""The records of `__consumer_offsets`, in Kafka's own formats, both ways.

A key starts with its version, which also tells what it is the key of: 0 and 1 a committed offset, 2 a classic
group, anything above one of the newer kinds of group. A value starts with a version of its own. A record
without a value deletes what its key names.

Written as Kafka 4.3 writes them: offsets in version 4, or in version 1 if they carry an expiry of their own
(OffsetCommit up to version 4), and groups in version 3. All that Kafka ever wrote can be read.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from ottla.core.errors import ProtocolError
from ottla.groups.formats import GroupKey, GroupMetadataValue, MemberMetadata, OffsetCommitValue, OffsetKey
from ottla.wire.declare import Message

try:
    from ottla.wire import plans as compiler
except ImportError:  # no compiled reader and writer: the same codecs as generated Python
    from ottla.wire import compiler  # type: ignore[no-redef]

if TYPE_CHECKING:
    from ottla.wire.compiler import Decoder, Encoder

__all__ = [
    "TOPIC",
    "GroupKey",
    "GroupMetadataValue",
    "KeyValue",
    "MemberMetadata",
    "OffsetCommitValue",
    "OffsetKey",
    "decode_group_value",
    "decode_key",
    "decode_offset_value",
    "encode_group",
    "encode_offset",
    "encode_value",
    "partition_for",
    "version_of",
]

TOPIC: Final = "__consumer_offsets"

Key: TypeAlias = OffsetKey | GroupKey
Value: TypeAlias = OffsetCommitValue | GroupMetadataValue


class KeyValue(NamedTuple):
    """What a record of the topic holds, as bytes."""

    key: bytes
    value: bytes | None


_VERSION: Final = Struct(">h")
_OFFSET_KEY: Final = 1
_GROUP_KEY: Final = 2
_OFFSET_VALUE: Final = 4
_OFFSET_VALUE_WITH_EXPIRY: Final = 1
_GROUP_VALUE: Final = 3
_NEWEST_VALUE: Final = 4
_FIRST_FLEXIBLE_VALUE: Final = 4
_MOST_MEMBERS: Final = 1_000_000

MessageT = TypeVar("MessageT", bound=Message)

_encoders: dict[tuple[type[Message], int], Encoder[Any]] = {}
_decoders: dict[tuple[type[Message], int], Decoder[Any]] = {}


def encode_offset(key: OffsetKey, value: OffsetCommitValue | None) -> KeyValue:
    encoded = _encode(key, _OFFSET_KEY, is_flexible=False)
    if value is None:
        return KeyValue(encoded, None)
    version = _OFFSET_VALUE if value.expire_timestamp == -1 else _OFFSET_VALUE_WITH_EXPIRY
    return KeyValue(encoded, encode_value(value, version))


def encode_group(key: GroupKey, value: GroupMetadataValue | None) -> KeyValue:
    encoded = _encode(key, _GROUP_KEY, is_flexible=False)
    return KeyValue(encoded, None if value is None else encode_value(value, _GROUP_VALUE))


def encode_value(value: Value, version: int) -> bytes:
    return _encode(value, version, is_flexible=version >= _FIRST_FLEXIBLE_VALUE)


def decode_key(data: bytes) -> Key | None:
    """Read a key; None if it belongs to a newer kind of group. Raises ProtocolError if it is broken."""
    version = version_of(data)
    if version > _GROUP_KEY:
        return None
    if version == _GROUP_KEY:
        return _decoder(GroupKey, version, is_flexible=False)(memoryview(data), _VERSION.size)
    return _decoder(OffsetKey, _known(version, _OFFSET_KEY), is_flexible=False)(memoryview(data), _VERSION.size)


def decode_offset_value(data: bytes) -> OffsetCommitValue:
    return _decode_value(OffsetCommitValue, data)


def decode_group_value(data: bytes) -> GroupMetadataValue:
    return _decode_value(GroupMetadataValue, data)


def version_of(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError(f"a record of {TOPIC} has {len(data)} bytes where its version should be")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def partition_for(group_id: str, partitions: int) -> int:
    """Which partition of the topic a group's records are in: Java's String.hashCode of its id, made positive."""
    code = 0
    for unit in memoryview(group_id.encode("utf-16-le", "surrogatepass")).cast("H"):
        code = (31 * code + unit) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >> 31 else code
    # Kafka's Utils.abs: the one number without a positive twin becomes zero.
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def _decode_value(struct: type[MessageT], data: bytes) -> MessageT:
    version = _known(version_of(data), _NEWEST_VALUE)
    decode = _decoder(struct, version, is_flexible=version >= _FIRST_FLEXIBLE_VALUE)
    return decode(memoryview(data), _VERSION.size)


def _known(version: int, newest: int) -> int:
    if not 0 <= version <= newest:
        raise ProtocolError(f"a record of {TOPIC} has version {version}, and {newest} is the newest known")
    return version


def _encode(message: Message, version: int, *, is_flexible: bool) -> bytes:
    key = type(message), version
    encode = _encoders.get(key)
    if encode is None:
        encode = _encoders[key] = compiler.compile_encoder(type(message), version, is_flexible=is_flexible)
    return b"".join(encode(message, bytearray(_VERSION.pack(version))))


def _decoder(struct: type[MessageT], version: int, *, is_flexible: bool) -> Decoder[MessageT]:
    key = struct, version
    decode: Decoder[MessageT] | None = _decoders.get(key)
    if decode is None:
        decode = compiler.compile_decoder(struct, version, is_flexible=is_flexible, room=_MOST_MEMBERS)
        _decoders[key] = decode
    return decode
