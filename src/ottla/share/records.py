"""Encodes and decodes the records of share groups, in Kafka's formats."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ottla.core.errors import ProtocolError
from ottla.share import formats
from ottla.share.formats import GroupKey, MemberKey, StateBatch, StateKey
from ottla.share.partition import Change
from ottla.share.spans import State
from ottla.wire import internal_records
from ottla.wire.internal_records import known_version, version_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.wire.declare import Message

GROUPS_TOPIC: Final = "__consumer_offsets"
STATE_TOPIC: Final = "__share_group_state"

MEMBER: Final = 10
GROUP: Final = 11
TARGET: Final = 12
TARGET_OF_MEMBER: Final = 13
CURRENT: Final = 14
STATE_METADATA: Final = 15
_GROUP_RECORDS: Final[Mapping[int, tuple[type[GroupKey | MemberKey], type[Message]]]] = {
    MEMBER: (MemberKey, formats.MemberMetadata),
    GROUP: (GroupKey, formats.GroupMetadata),
    TARGET: (GroupKey, formats.TargetAssignmentMetadata),
    TARGET_OF_MEMBER: (MemberKey, formats.TargetAssignment),
    CURRENT: (MemberKey, formats.CurrentAssignment),
    STATE_METADATA: (GroupKey, formats.StateMetadata),
}

SNAPSHOT: Final = 0
UPDATE: Final = 1


class KeyValue(NamedTuple):
    """The bytes of a record."""

    key: bytes
    value: bytes | None


class Batch(Protocol):
    """Consecutive offsets with one state, in a record or a request."""

    @property
    def first_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...

    @property
    def delivery_state(self) -> int: ...

    @property
    def delivery_count(self) -> int: ...


class GroupRecord(NamedTuple):
    kind: int
    key: GroupKey | MemberKey
    value: Message | None


def encode_group_record(kind: int, key: GroupKey | MemberKey, value: Message | None) -> KeyValue:
    encoded = internal_records.encode(key, kind, is_flexible=False)
    return KeyValue(encoded, None if value is None else internal_records.encode(value, 0, is_flexible=True))


def decode_group_record(key: bytes, value: bytes | None) -> GroupRecord | None:
    """Parse a record; None if it is not of a share group. Raises ProtocolError if it is malformed."""
    kind = version_of(key, GROUPS_TOPIC)
    if kind not in _GROUP_RECORDS:
        return None
    key_type, value_type = _GROUP_RECORDS[kind]
    decoded = internal_records.decode(key_type, key, kind, is_flexible=False)
    if value is None:
        return GroupRecord(kind, decoded, None)
    known_version(version_of(value, GROUPS_TOPIC), 0, GROUPS_TOPIC)
    return GroupRecord(kind, decoded, internal_records.decode(value_type, value, 0, is_flexible=True))


def encode_state_record(key: StateKey, value: formats.Snapshot | formats.Update) -> KeyValue:
    kind = SNAPSHOT if isinstance(value, formats.Snapshot) else UPDATE
    return KeyValue(
        internal_records.encode(key, kind, is_flexible=False), internal_records.encode(value, 0, is_flexible=True)
    )


def forget_state_record(key: StateKey) -> KeyValue:
    return KeyValue(internal_records.encode(key, SNAPSHOT, is_flexible=False), None)


def decode_state_record(key: bytes, value: bytes | None) -> tuple[StateKey, formats.Snapshot | formats.Update | None]:
    kind = known_version(version_of(key, STATE_TOPIC), UPDATE, STATE_TOPIC)
    decoded = internal_records.decode(StateKey, key, kind, is_flexible=False)
    if value is None:
        return decoded, None
    known_version(version_of(value, STATE_TOPIC), 0, STATE_TOPIC)
    kinds: tuple[type[formats.Snapshot], type[formats.Update]] = (formats.Snapshot, formats.Update)
    return decoded, internal_records.decode(kinds[kind], value, 0, is_flexible=True)


def state_batches(changes: Iterable[Change]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count, _ in changes
    )


def changes_of(batches: Iterable[Batch]) -> list[Change]:
    try:
        return [
            Change(one.first_offset, one.last_offset, State(one.delivery_state), one.delivery_count) for one in batches
        ]
    except ValueError as unknown:
        raise ProtocolError("unknown delivery state") from unknown


def state_name(key: StateKey) -> str:
    """The key of Kafka's share coordinator: group, topic id and partition."""
    topic_id = urlsafe_b64encode(key.topic_id).decode().rstrip("=")
    return f"{key.group_id}:{topic_id}:{key.partition}"


def state_partition_for(key: StateKey, partitions: int) -> int:
    return internal_records.partition_for(state_name(key), partitions)
