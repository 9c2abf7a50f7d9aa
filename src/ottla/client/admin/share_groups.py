"""Share groups (KIP-932): members and offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.client.admin.offsets import by_topic, outcome
from ottla.client.admin.requests import AdminRequests
from ottla.client.errors import raise_for
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.client.errors import BrokerError
    from ottla.wire.messages.share_group_describe import DescribedGroup


@dataclass(frozen=True, slots=True)
class ShareOffset:
    start: int
    """The share-partition start offset."""
    lag: int | None
    """The number of unfinished records from there on; None if the broker does not report it."""


class ShareGroupAdmin(AdminRequests):
    async def share_group_offsets(self, group: str) -> dict[TopicPartition, ShareOffset]:
        """The offsets of a share group, for all its initialized partitions."""
        asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
        request = DescribeShareGroupOffsetsRequest(groups=(asked,))
        response = await self._ask_coordinator(
            group, request, lambda answer: (each.error_code for each in answer.groups)
        )
        [result] = response.groups
        raise_for(result.error_code, f"cannot describe offsets of share group {group!r}", result.error_message)
        return {
            TopicPartition(topic.topic_name, part.partition_index): ShareOffset(
                part.start_offset, None if part.lag < 0 else part.lag
            )
            for topic in result.topics
            for part in topic.partitions
            if part.error_code == ErrorCode.NONE and part.start_offset >= 0
        }

    async def alter_share_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, BrokerError | None]:
        """Set the start offsets of an empty share group; returns for each partition an error, or None."""
        topics = tuple(
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=tuple(
                    AlterShareGroupOffsetsRequestPartition(partition_index=where.partition, start_offset=offset)
                    for where, offset in items
                ),
            )
            for name, items in by_topic(offsets)
        )
        request = AlterShareGroupOffsetsRequest(group_id=group, topics=topics)
        response = await self._ask_coordinator(group, request, lambda answer: (answer.error_code,))
        raise_for(response.error_code, f"cannot set offsets of group {group!r}", response.error_message)
        return {
            (where := TopicPartition(topic.topic_name, each.partition_index)): outcome(
                each.error_code, f"cannot set the offset of group {group!r} in {where}"
            )
            for topic in response.responses
            for each in topic.partitions
        }

    async def delete_share_group_offsets(self, group: str, topics: Iterable[str]) -> dict[str, BrokerError | None]:
        """Delete an empty share group's offsets of these topics; returns for each an error, or None."""
        request = DeleteShareGroupOffsetsRequest(
            group_id=group, topics=tuple(DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics)
        )
        response = await self._ask_coordinator(group, request, lambda answer: (answer.error_code,))
        raise_for(response.error_code, f"cannot delete offsets of group {group!r}", response.error_message)
        return {
            topic.topic_name: outcome(
                topic.error_code, f"cannot delete the offsets of group {group!r} in {topic.topic_name}"
            )
            for topic in response.responses
        }

    async def _find_share_group(self, group: str) -> DescribedGroup | None:
        """None if there is no such share group."""
        request = ShareGroupDescribeRequest(group_ids=(group,), include_authorized_operations=False)
        return await self._find_group(group, request, lambda answer: answer.groups)
