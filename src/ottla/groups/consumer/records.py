"""Encodes and decodes the records of consumer groups in `__consumer_offsets`. The version of a key is its type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.groups.consumer.formats import (
    CurrentKey,
    CurrentValue,
    EpochKey,
    EpochValue,
    MemberKey,
    MemberValue,
    RegexKey,
    RegexValue,
    SubscriptionKey,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
)
from ottla.wire import internal_records

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.groups.consumer.formats import Key, Value

_VALUE_VERSION: Final = 0

_KEYS: Final[Mapping[int, type[Key]]] = {
    3: EpochKey,
    4: SubscriptionKey,
    5: MemberKey,
    6: TargetEpochKey,
    7: TargetKey,
    8: CurrentKey,
    16: RegexKey,
}
_VERSIONS: Final[Mapping[type[Key], int]] = {key: version for version, key in _KEYS.items()}
_VALUES: Final[Mapping[type[Key], type[Value]]] = {
    EpochKey: EpochValue,
    MemberKey: MemberValue,
    TargetEpochKey: TargetEpochValue,
    TargetKey: TargetValue,
    CurrentKey: CurrentValue,
    RegexKey: RegexValue,
}


class Record(NamedTuple):
    """A record; without a value it is a tombstone."""

    key: Key
    value: Value | None


def decode_key(data: bytes, version: int) -> Key:
    return internal_records.decode(_KEYS[version], data, version, is_flexible=False)


def decode_value(key: Key, data: bytes, topic: str) -> Value | None:
    """Parse a value; None if it is obsolete. Raises ProtocolError if it is malformed."""
    kind = _VALUES.get(type(key))
    if kind is None:
        return None
    version = internal_records.version_of(data, topic)
    internal_records.known_version(version, _VALUE_VERSION, topic)
    return internal_records.decode(kind, data, version, is_flexible=True)


def encode(record: Record) -> tuple[bytes, bytes | None]:
    key = internal_records.encode(record.key, _VERSIONS[type(record.key)], is_flexible=False)
    if record.value is None:
        return key, None
    return key, internal_records.encode(record.value, _VALUE_VERSION, is_flexible=True)
