"""The committed offsets of a group, and their expiry.

The log comes first: offsets change here only when `apply` is called with appended records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.ids import TopicPartition
from ottla.groups.formats import OffsetCommitValue
from ottla.groups.sizes import offset_bytes
from ottla.wire.declare import NO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ottla.groups.config import GroupConfig
    from ottla.groups.group import Group
    from ottla.wire.messages.offset_commit import OffsetCommitRequestPartition
    from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition

CURSOR_PREFIX: Final = "__dmqp."
"""The prefix of the group whose offsets are the DMQP pop position of a topic; the topic's name follows."""


def is_cursor(group_id: str) -> bool:
    """Whether the group is a DMQP cursor, whose offsets never expire and are fenced by leader epoch.

    If a cursor expired like other offsets, consumers would start again at the first message.
    """
    return group_id.startswith(CURSOR_PREFIX)


class GroupOffsets:
    """The committed offsets of one group."""

    __slots__ = ("_by_topic", "held_bytes")

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[int, OffsetCommitValue]] = {}
        self.held_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._by_topic)

    def __len__(self) -> int:
        return sum(map(len, self._by_topic.values()))

    def __iter__(self) -> Iterator[tuple[TopicPartition, OffsetCommitValue]]:
        for topic, partitions in self._by_topic.items():
            for partition, value in partitions.items():
                yield TopicPartition(topic, partition), value

    def get(self, topic: str, partition: int, topic_id: bytes = NO_UUID) -> OffsetCommitValue | None:
        """The committed offset, unless it was committed for a deleted topic of the same name."""
        found = self._by_topic.get(topic, {}).get(partition)
        return None if found is None or is_of_another_topic(found, topic_id) else found

    def growth_at(self, at: TopicPartition, metadata: str | None) -> int:
        """The additional memory of a commit with this metadata; None for a deleted one."""
        known = self._by_topic.get(at.topic, {}).get(at.partition)
        growth = 0 if metadata is None else offset_bytes(at.topic, metadata)
        return growth if known is None else growth - offset_bytes(at.topic, known.metadata)

    def apply(self, changes: Mapping[TopicPartition, OffsetCommitValue | None]) -> None:
        """Apply appended records."""
        for at, value in changes.items():
            self.held_bytes += self.growth_at(at, None if value is None else value.metadata)
            if value is not None:
                self._by_topic.setdefault(at.topic, {})[at.partition] = value
            elif at.topic in self._by_topic:
                partitions = self._by_topic[at.topic]
                partitions.pop(at.partition, None)
                if not partitions:
                    del self._by_topic[at.topic]

    def in_topic(self, topic: str, topic_id: bytes = NO_UUID) -> list[TopicPartition]:
        partitions = self._by_topic.get(topic, {}).items()
        return [TopicPartition(topic, each) for each, value in partitions if not is_of_another_topic(value, topic_id)]

    def expired(self, group: Group, config: GroupConfig, now_ms: int) -> list[TopicPartition]:
        if is_cursor(group.group_id):
            return []
        return [
            at for at, value in self if not group.is_subscribed_to(at.topic) and _is_old(value, group, config, now_ms)
        ]


def is_of_another_topic(value: OffsetCommitValue, topic_id: bytes) -> bool:
    return topic_id not in (NO_UUID, value.topic_id) and value.topic_id != NO_UUID


def new_value(
    committed: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
    topic_id: bytes,
    retention_ms: int,
    now_ms: int,
) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=committed.committed_offset,
        leader_epoch=committed.committed_leader_epoch,
        metadata=committed.committed_metadata or "",
        commit_timestamp=now_ms,
        # Clients before Kafka 2.1 could set the retention of an offset.
        expire_timestamp=-1 if retention_ms == -1 else now_ms + retention_ms,
        topic_id=topic_id,
    )


def _is_old(value: OffsetCommitValue, group: Group, config: GroupConfig, now_ms: int) -> bool:
    since_ms = group.retention_starts_ms(value)
    if since_ms is None:
        return False
    if value.expire_timestamp != -1:
        return now_ms >= value.expire_timestamp
    return now_ms - since_ms >= config.offsets_retention_ms
