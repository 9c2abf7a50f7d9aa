"""Offsets of partitions and groups, and deleting records."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.client.admin.requests import AdminRequests, LeaderRequest
from ottla.client.errors import BrokerError, broker_error, raise_for
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ItemT = TypeVar("ItemT")

_LATEST: Final = -1
_EARLIEST: Final = -2
_NO_REPLICA: Final = -1
_LAST_BY_NAME: Final = 9
"""From version 10 on, group offsets use topic ids; a deleted topic has none."""


@dataclass(frozen=True, slots=True)
class FoundOffset:
    offset: int
    """The offset; -1 if no record is at or after the given time."""
    timestamp: int
    """The record's timestamp; -1 if unknown."""
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class OffsetAdmin(AdminRequests):
    async def earliest_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, FoundOffset | BrokerError]:
        """The log start offset of each partition."""
        return await self.offsets_at(dict.fromkeys(partitions, _EARLIEST))

    async def latest_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, FoundOffset | BrokerError]:
        """The log end offset of each partition."""
        return await self.offsets_at(dict.fromkeys(partitions, _LATEST))

    async def offsets_at(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, FoundOffset | BrokerError]:
        """The first offset of each partition at or after its time, in ms since 1970."""
        return await self._ask_leaders(LeaderRequest(timestamps_ms, self._list_offsets))

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | BrokerError]:
        """Delete the records below these offsets, -1 for all; returns the log start offset of each partition."""
        return await self._ask_leaders(LeaderRequest(before, self._delete_records))

    async def group_offsets(self, group: str) -> dict[TopicPartition, CommittedOffset]:
        """All committed offsets of a group; empty if there is no such group."""
        request = OffsetFetchRequest(
            group_id=group, topics=None, groups=(OffsetFetchRequestGroup(group_id=group, topics=None),)
        )
        response = await self._ask_coordinator(group, request, _codes_of_fetch, max_version=_LAST_BY_NAME)
        for code in _codes_of_fetch(response):
            raise_for(code, f"cannot read the offsets of group {group!r}")
        topics = response.groups[0].topics if response.groups else response.topics
        found: dict[TopicPartition, CommittedOffset] = {}
        for topic in topics:
            for each in topic.partitions:
                where = TopicPartition(topic.name, each.partition_index)
                raise_for(each.error_code, f"cannot read the offset of group {group!r} in {where}")
                found[where] = CommittedOffset(each.committed_offset, each.committed_leader_epoch, each.metadata or "")
        return found

    async def alter_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int | CommittedOffset]
    ) -> dict[TopicPartition, BrokerError | None]:
        """Set offsets of an empty group; returns for each partition an error, or None."""
        topics = tuple(
            OffsetCommitRequestTopic(
                name=name,
                partitions=tuple(_commit(where.partition, offset) for where, offset in items),
            )
            for name, items in by_topic(offsets)
        )
        response = await self._ask_coordinator(
            group,
            OffsetCommitRequest(group_id=group, member_id="", topics=topics),
            lambda answer: (each.error_code for topic in answer.topics for each in topic.partitions),
            max_version=_LAST_BY_NAME,
        )
        return {
            (where := TopicPartition(topic.name, each.partition_index)): outcome(
                each.error_code, f"cannot set the offset of group {group!r} in {where}"
            )
            for topic in response.topics
            for each in topic.partitions
        }

    async def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, BrokerError | None]:
        """Delete a group's offsets of topics that no member subscribes to; returns for each an error, or None."""
        topics = tuple(
            OffsetDeleteRequestTopic(
                name=name,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=where.partition) for where, _ in items),
            )
            for name, items in by_topic(dict.fromkeys(partitions))
        )
        response = await self._ask_coordinator(
            group, OffsetDeleteRequest(group_id=group, topics=topics), lambda answer: (answer.error_code,)
        )
        raise_for(response.error_code, f"cannot delete offsets of group {group!r}")
        return {
            (where := TopicPartition(topic.name, each.partition_index)): outcome(
                each.error_code, f"cannot delete the offset of group {group!r} in {where}"
            )
            for topic in response.topics
            for each in topic.partitions
        }

    async def _list_offsets(
        self, node_id: int, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, FoundOffset | BrokerError]:
        topics = tuple(
            ListOffsetsTopic(
                name=name,
                partitions=tuple(
                    ListOffsetsPartition(partition_index=where.partition, timestamp=timestamp)
                    for where, timestamp in items
                ),
            )
            for name, items in by_topic(timestamps_ms)
        )
        request = ListOffsetsRequest(replica_id=_NO_REPLICA, topics=topics, timeout_ms=self._timeout_ms)
        response = await self._router.ask(request, node_id=node_id)
        return {
            (where := TopicPartition(topic.name, each.partition_index)): outcome(
                each.error_code, f"cannot list offsets of {where}"
            )
            or FoundOffset(each.offset, each.timestamp, each.leader_epoch)
            for topic in response.topics
            for each in topic.partitions
        }

    async def _delete_records(
        self, node_id: int, before: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | BrokerError]:
        topics = tuple(
            DeleteRecordsTopic(
                name=name,
                partitions=tuple(
                    DeleteRecordsPartition(partition_index=where.partition, offset=offset) for where, offset in items
                ),
            )
            for name, items in by_topic(before)
        )
        request = DeleteRecordsRequest(topics=topics, timeout_ms=self._timeout_ms)
        response = await self._router.ask(request, node_id=node_id)
        return {
            (where := TopicPartition(topic.name, each.partition_index)): outcome(
                each.error_code, f"cannot delete records of {where}"
            )
            or each.low_watermark
            for topic in response.topics
            for each in topic.partitions
        }


def by_topic(items: Mapping[TopicPartition, ItemT]) -> Iterator[tuple[str, list[tuple[TopicPartition, ItemT]]]]:
    ordered = sorted(items.items(), key=lambda item: item[0])
    for topic, group in groupby(ordered, key=lambda item: item[0].topic):
        yield topic, list(group)


def _commit(partition: int, offset: int | CommittedOffset) -> OffsetCommitRequestPartition:
    committed = CommittedOffset(offset) if isinstance(offset, int) else offset
    return OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        committed_metadata=committed.metadata,
    )


def _codes_of_fetch(response: OffsetFetchResponse) -> list[int]:
    return [response.error_code, *(group.error_code for group in response.groups)]


def outcome(code: int, about: str) -> BrokerError | None:
    return None if code == ErrorCode.NONE else broker_error(code, about)
