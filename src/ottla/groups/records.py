"""The records of `__consumer_offsets`, encoded and decoded in Kafka's formats.

A key starts with its version, which is also its type: 0 and 1 a committed offset, 2 a classic
group, 3 to 8 and 16 a consumer group (consumer/records.py), anything else another type of group. A value starts
with its own version. A record without a value is a tombstone.

Written as by Kafka 4.3: offsets in version 4, or in version 1 if they have an explicit expiry
(OffsetCommit up to version 4), and groups in version 3. All versions ever written by Kafka can be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from ottla.groups.formats import GroupKey, GroupMetadataValue, MemberMetadata, OffsetCommitValue, OffsetKey
from ottla.wire import internal_records
from ottla.wire.declare import Message
from ottla.wire.internal_records import known_version, partition_for

if TYPE_CHECKING:
    from ottla.groups.consumer.formats import Key as ConsumerKey

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
    "is_of_share_group",
    "partition_for",
    "version_of",
]

TOPIC: Final = "__consumer_offsets"

Key: TypeAlias = "OffsetKey | GroupKey | ConsumerKey"
Value: TypeAlias = OffsetCommitValue | GroupMetadataValue


class KeyValue(NamedTuple):
    """The bytes of a record."""

    key: bytes
    value: bytes | None


_KEYS_OF_CONSUMER_GROUPS: Final = frozenset({3, 4, 5, 6, 7, 8, 16})
_OFFSET_KEY: Final = 1
_GROUP_KEY: Final = 2
_SHARE_GROUP_KEYS: Final = range(10, 16)
_OFFSET_VALUE: Final = 4
_OFFSET_VALUE_WITH_EXPIRY: Final = 1
_GROUP_VALUE: Final = 3
_NEWEST_VALUE: Final = 4
_FIRST_FLEXIBLE_VALUE: Final = 4

MessageT = TypeVar("MessageT", bound=Message)


def encode_offset(key: OffsetKey, value: OffsetCommitValue | None) -> KeyValue:
    encoded = internal_records.encode(key, _OFFSET_KEY, is_flexible=False)
    if value is None:
        return KeyValue(encoded, None)
    version = _OFFSET_VALUE if value.expire_timestamp == -1 else _OFFSET_VALUE_WITH_EXPIRY
    return KeyValue(encoded, encode_value(value, version))


def encode_group(key: GroupKey, value: GroupMetadataValue | None) -> KeyValue:
    encoded = internal_records.encode(key, _GROUP_KEY, is_flexible=False)
    return KeyValue(encoded, None if value is None else encode_value(value, _GROUP_VALUE))


def encode_value(value: Value, version: int) -> bytes:
    return internal_records.encode(value, version, is_flexible=version >= _FIRST_FLEXIBLE_VALUE)


def decode_key(data: bytes) -> Key | None:
    """Parse a key; None if its group type is unknown. Raises ProtocolError if it is malformed."""
    version = version_of(data)
    if version in _KEYS_OF_CONSUMER_GROUPS:
        from ottla.groups.consumer import records as of_consumer_groups  # imported lazily

        return of_consumer_groups.decode_key(data, version)
    if version > _GROUP_KEY:
        return None
    if version == _GROUP_KEY:
        return internal_records.decode(GroupKey, data, version, is_flexible=False)
    version = known_version(version, _OFFSET_KEY, TOPIC)
    return internal_records.decode(OffsetKey, data, version, is_flexible=False)


def is_of_share_group(key: bytes) -> bool:
    return version_of(key) in _SHARE_GROUP_KEYS


def decode_offset_value(data: bytes) -> OffsetCommitValue:
    return _decode_value(OffsetCommitValue, data)


def decode_group_value(data: bytes) -> GroupMetadataValue:
    return _decode_value(GroupMetadataValue, data)


def version_of(data: bytes) -> int:
    return internal_records.version_of(data, TOPIC)


def _decode_value(struct: type[MessageT], data: bytes) -> MessageT:
    version = known_version(version_of(data), _NEWEST_VALUE, TOPIC)
    return internal_records.decode(struct, data, version, is_flexible=version >= _FIRST_FLEXIBLE_VALUE)
