"""The broker's topics as the group rules see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.groups.topic_view import TopicInfo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.topics import Topics, TopicState


class GroupTopics:
    __slots__ = ("_topics",)

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    @property
    def version(self) -> int:
        return self._topics.version

    def by_name(self, name: str) -> TopicInfo | None:
        return _info(self._topics.by_name.get(name))

    def by_id(self, topic_id: bytes) -> TopicInfo | None:
        return _info(self._topics.by_id.get(topic_id))

    def names(self) -> Iterator[str]:
        return (state.name for state in self._topics.by_name.values() if not state.entry.is_internal)


def _info(state: TopicState | None) -> TopicInfo | None:
    return None if state is None else TopicInfo(state.raw_id, state.name, len(state.partitions))
