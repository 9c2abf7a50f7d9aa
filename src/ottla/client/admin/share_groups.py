"""Share groups (KIP-932): who is in them, and how far they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.client.admin.asking import Asking
from ottla.client.errors import raise_for
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest

if TYPE_CHECKING:
    from ottla.wire.messages.share_group_describe import DescribedGroup


@dataclass(frozen=True, slots=True)
class ShareOffset:
    start: int
    """The first record that the group is not done with."""
    lag: int | None
    """How many there are from there on that it is not done with; None if the broker does not say."""


class ShareGroupAdmin(Asking):
    async def share_group_offsets(self, group: str) -> dict[TopicPartition, ShareOffset]:
        """Where a share group is, of all partitions that it has begun with."""
        asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
        request = DescribeShareGroupOffsetsRequest(groups=(asked,))
        response = await self._ask_coordinator(
            group, request, lambda answer: (each.error_code for each in answer.groups)
        )
        [result] = response.groups
        raise_for(result.error_code, f"cannot tell where group {group!r} is", result.error_message)
        return {
            TopicPartition(topic.topic_name, part.partition_index): ShareOffset(
                part.start_offset, None if part.lag < 0 else part.lag
            )
            for topic in result.topics
            for part in topic.partitions
            if part.error_code == ErrorCode.NONE and part.start_offset >= 0
        }

    async def _find_share_group(self, group: str) -> DescribedGroup | None:
        """None if there is no share group of this name."""
        request = ShareGroupDescribeRequest(group_ids=(group,), include_authorized_operations=False)
        return await self._find_group(group, request)  # type: ignore[no-any-return]
