"""Keys and values of the internal topics: a version, then a message in that version."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ottla.core.errors import ProtocolError
from ottla.wire.declare import Message

try:
    from ottla.wire import plans as compiler
except ImportError:  # no compiled reader and writer: the same codecs as generated Python
    from ottla.wire import compiler  # type: ignore[no-redef]

if TYPE_CHECKING:
    from ottla.wire.compiler import Decoder, Encoder

_VERSION: Final = Struct(">h")
_MOST_ENTRIES: Final = 1_000_000

MessageT = TypeVar("MessageT", bound=Message)

_encoders: dict[tuple[type[Message], int], Encoder[Any]] = {}
_decoders: dict[tuple[type[Message], int], Decoder[Any]] = {}


def version_of(data: bytes, topic: str) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError(f"a record of {topic} with {len(data)} bytes has no version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def known_version(version: int, newest: int, topic: str) -> int:
    if not 0 <= version <= newest:
        raise ProtocolError(f"a record of {topic} has version {version}, newest supported is {newest}")
    return version


def encode(message: Message, version: int, *, is_flexible: bool) -> bytes:
    key = type(message), version
    encoder = _encoders.get(key)
    if encoder is None:
        encoder = _encoders[key] = compiler.compile_encoder(type(message), version, is_flexible=is_flexible)
    return b"".join(encoder(message, bytearray(_VERSION.pack(version))))


def decode(struct: type[MessageT], data: bytes, version: int, *, is_flexible: bool) -> MessageT:
    """Decode the part after the version."""
    key = struct, version
    decoder: Decoder[MessageT] | None = _decoders.get(key)
    if decoder is None:
        decoder = compiler.compile_decoder(struct, version, is_flexible=is_flexible, room=_MOST_ENTRIES)
        _decoders[key] = decoder
    return decoder(memoryview(data), _VERSION.size)


def partition_for(name: str, partitions: int) -> int:
    """The partition of a group or transactional id: Java's String.hashCode of it, made positive."""
    code = 0
    for unit in memoryview(name.encode("utf-16-le", "surrogatepass")).cast("H"):
        code = (31 * code + unit) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >> 31 else code
    # Kafka's Utils.abs: the minimum integer becomes zero.
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions
