"""The embedded consumer protocol: messages between group members, opaque to the broker.

A subscription is sent with JoinGroup, an assignment comes from the leader. Both start with a version.
A version newer than known is read as the newest known: fields are only added at the end (KIP-429).
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ottla.core.errors import ProtocolError
from ottla.core.ids import TopicPartition
from ottla.wire.declare import Message
from ottla.wire.messages.consumer_protocol import Assignment, PreviousAssignment, Subscription, TopicPartitions

try:
    from ottla.wire import plans as compiler
except ImportError:  # no compiled reader and writer: the same codecs as generated Python
    from ottla.wire import compiler  # type: ignore[no-redef]

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.wire.compiler import Decoder, Encoder

__all__ = [
    "CONSUMER_PROTOCOL",
    "NEWEST_VERSION",
    "Assignment",
    "PreviousAssignment",
    "Subscription",
    "TopicPartitions",
    "by_topic",
    "decode_assignment",
    "decode_previous_assignment",
    "decode_subscription",
    "each_partition",
    "encode_assignment",
    "encode_previous_assignment",
    "encode_subscription",
]

CONSUMER_PROTOCOL: Final = "consumer"
NEWEST_VERSION: Final = 3

_VERSION: Final = Struct(">h")
_MOST_ENTRIES: Final = 10_000_000

MessageT = TypeVar("MessageT", bound=Message)


_encoders: dict[tuple[type[Message], int], Encoder[Any]] = {}
_decoders: dict[tuple[type[Message], int], Decoder[Any]] = {}


def encode_subscription(subscription: Subscription, version: int = NEWEST_VERSION) -> bytes:
    return _encode(subscription, version, _VERSION.pack(version))


def decode_subscription(data: bytes) -> Subscription:
    return _decoder(Subscription, _version_of(data))(memoryview(data), _VERSION.size)


def encode_assignment(assignment: Assignment, version: int = NEWEST_VERSION) -> bytes:
    return _encode(assignment, version, _VERSION.pack(version))


def decode_assignment(data: bytes) -> Assignment:
    return _decoder(Assignment, _version_of(data))(memoryview(data), _VERSION.size)


def encode_previous_assignment(previous: PreviousAssignment, version: int = 1) -> bytes:
    return _encode(previous, version, b"")


def decode_previous_assignment(data: bytes) -> PreviousAssignment:
    try:
        return _decoder(PreviousAssignment, 1)(memoryview(data), 0)
    except ProtocolError:
        return _decoder(PreviousAssignment, 0)(memoryview(data), 0)


def by_topic(partitions: Iterable[TopicPartition]) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(topic=topic, partitions=tuple(one.partition for one in of_topic))
        for topic, of_topic in groupby(sorted(partitions), attrgetter("topic"))
    )


def each_partition(topics: Iterable[TopicPartitions]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(one.topic, partition) for one in topics for partition in one.partitions)


def _version_of(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError(f"a consumer protocol message of {len(data)} bytes has no version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise ProtocolError(f"invalid consumer protocol version {version}")
    return min(version, NEWEST_VERSION)


def _encode(message: Message, version: int, before: bytes) -> bytes:
    key = type(message), version
    encode = _encoders.get(key)
    if encode is None:
        encode = _encoders[key] = compiler.compile_encoder(type(message), version, is_flexible=False)
    return b"".join(encode(message, bytearray(before)))


def _decoder(struct: type[MessageT], version: int) -> Decoder[MessageT]:
    key = struct, version
    decode: Decoder[MessageT] | None = _decoders.get(key)
    if decode is None:
        decode = compiler.compile_decoder(struct, version, is_flexible=False, room=_MOST_ENTRIES)
        _decoders[key] = decode
    return decode
