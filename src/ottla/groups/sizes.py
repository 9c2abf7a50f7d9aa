"""Estimates of the memory of groups. The constants are the sizes of CPython's objects, rounded up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.groups.consumer.formats import CurrentValue, Key, MemberValue, TargetValue, Value
    from ottla.wire.messages.join_group import JoinGroupRequestProtocol

GROUP_BYTES: Final = 2000
MEMBER_BYTES: Final = 1000
PENDING_ID_BYTES: Final = 1000
_PROTOCOL_BYTES: Final = 200
_NAME_BYTES: Final = 100
_OFFSET_BYTES: Final = 400
_RECORD_BYTES: Final = 400
_PARTITION_BYTES: Final = 300


def protocols_bytes(protocols: Iterable[JoinGroupRequestProtocol]) -> int:
    return sum(_PROTOCOL_BYTES + len(each.name) + len(each.metadata) for each in protocols)


def names_bytes(names: Iterable[str]) -> int:
    return sum(_NAME_BYTES + len(name) for name in names)


def text_bytes(*texts: str | None) -> int:
    return sum(len(text) for text in texts if text is not None)


def offset_bytes(topic: str, metadata: str) -> int:
    return _OFFSET_BYTES + len(topic) + len(metadata)


def record_bytes(key: Key, value: Value) -> int:
    """The memory of a consumer group record and of the indexes derived from it."""
    from ottla.groups.consumer import formats  # imported lazily

    size = _RECORD_BYTES + text_bytes(key.group_id)
    match value:
        case formats.MemberValue():
            return size + subscription_bytes(value)
        case formats.TargetValue() | formats.CurrentValue():
            return size + _PARTITION_BYTES * _partition_count(value)
        case formats.RegexValue():
            return size + names_bytes(value.topics)
        case _:
            return size


def subscription_bytes(member: MemberValue) -> int:
    size = MEMBER_BYTES + names_bytes(member.subscribed_topic_names)
    size += text_bytes(member.subscribed_topic_regex, member.client_id, member.instance_id, member.rack_id)
    classic = member.classic_member_metadata
    return size if classic is None else size + protocols_bytes(classic.supported_protocols)  # type: ignore[arg-type]


def _partition_count(value: TargetValue | CurrentValue) -> int:
    from ottla.groups.consumer import formats

    if isinstance(value, formats.TargetValue):
        return sum(len(each.partitions) for each in value.topic_partitions)
    held = (*value.assigned_partitions, *value.partitions_pending_revocation)
    return sum(len(each.partitions) for each in held)
