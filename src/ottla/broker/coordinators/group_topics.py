"""The broker's topics as the group rules see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.groups.topic_view import TopicInfo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.partition_racks import PartitionRacks
    from ottla.broker.topics import Topics, TopicState


class GroupTopics:
    __slots__ = ("_racks", "_topics")

    def __init__(self, topics: Topics, racks: PartitionRacks | None) -> None:
        self._topics = topics
        self._racks = racks

    @property
    def version(self) -> int:
        return self._topics.version + (0 if self._racks is None else self._racks.version)

    def by_name(self, name: str) -> TopicInfo | None:
        return self._info(self._topics.by_name.get(name))

    def by_id(self, topic_id: bytes) -> TopicInfo | None:
        return self._info(self._topics.by_id.get(topic_id))

    def names(self) -> Iterator[str]:
        return (state.name for state in self._topics.by_name.values() if not state.entry.is_internal)

    def _info(self, state: TopicState | None) -> TopicInfo | None:
        if state is None:
            return None
        count = len(state.partitions)
        racks = () if self._racks is None else self._racks.of(state.entry.id, count)
        return TopicInfo(state.raw_id, state.name, count, racks)
