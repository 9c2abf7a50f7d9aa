"""How far a query is, told to a consumer group: so that its lag shows wherever groups are looked at.

Spark's checkpoint stays the truth. Nothing is ever read from here but the identity of the topics: an offset is
committed together with the id of its topic, and tells a topic that was made again from the one before.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.client.admin.offsets import CommittedOffset
from ottla.client.errors import ClientError

if TYPE_CHECKING:
    from ottla.client.blocking.background import Background
    from ottla.core.ids import TopicPartition
    from ottla.spark.cluster import Partitions
    from ottla.spark.offsets import Offsets

_log: Final = logging.getLogger(__name__)
_TOPIC_ID: Final = "topic-id="


class GroupProgress:
    def __init__(self, link: Background, group: str) -> None:
        self._link = link
        self._group = group
        self._told: Offsets = {}

    def tell(self, offsets: Offsets, partitions: Partitions) -> None:
        """All below these offsets is done. A group that cannot be told is no reason to stop a query."""
        if offsets == self._told:
            return
        news = {
            at: CommittedOffset(offset, metadata=f"{_TOPIC_ID}{partitions[at].hex()}")
            for at, offset in offsets.items()
            if at in partitions
        }
        try:
            outcomes = self._link.call(self._link.client.admin.alter_group_offsets(self._group, news))
        except ClientError as failed:
            _log.warning("group %s is not told how far the query is: %s", self._group, failed)
            return
        for refused in outcomes.values():
            if refused is not None:
                _log.warning("%s", refused)
        self._told = dict(offsets)

    def topic_ids(self) -> dict[str, bytes]:
        """The ids of the topics that the group has been told about."""
        try:
            committed = self._link.call(self._link.client.admin.group_offsets(self._group))
        except ClientError as failed:
            _log.warning("group %s does not say which topics it has read: %s", self._group, failed)
            return {}
        return {at.topic: found for at, each in committed.items() if (found := _topic_id(at, each)) is not None}


def _topic_id(at: TopicPartition, committed: CommittedOffset) -> bytes | None:
    if not committed.metadata.startswith(_TOPIC_ID):
        return None
    try:
        return bytes.fromhex(committed.metadata.removeprefix(_TOPIC_ID))
    except ValueError:
        _log.warning("the group's offset of %s bears a topic id that is none: %s", at, committed.metadata)
        return None
