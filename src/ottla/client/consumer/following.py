"""Reading without a group: all partitions of the topics, including partitions added later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.consumer.partition_queue import Start
from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.consumer.assignment import Assignment
    from ottla.client.group.selection import Selection
    from ottla.client.router import Router


class Following:
    def __init__(self, router: Router, assignment: Assignment, selection: Selection) -> None:
        self._router = router
        self._assignment = assignment
        self._selection = selection
        self._has_begun = False
        self._stop_listening = router.subscribe_to_changes(self._view_changed)

    async def start(self) -> list[TopicPartition]:
        """The initial partitions; fails if a topic does not exist."""
        if self._selection.named is None:
            self._router.watch(None)
            await self._router.refresh(None)
        for topic in self._selection.named or ():
            await self._router.topic(topic)
        self._has_begun = True
        return self._partitions()

    def close(self) -> None:
        self._stop_listening()

    def _view_changed(self) -> None:
        # A new partition is read from its beginning: all of its records are unread.
        if self._has_begun:
            self._assignment.add(self._partitions(), Start.EARLIEST)

    def _partitions(self) -> list[TopicPartition]:
        view = self._router.view
        known = [view.topics[name] for name in sorted(self._selection.topics(view)) if name in view.topics]
        return [TopicPartition(topic.name, index) for topic in known for index in topic.partitions]
