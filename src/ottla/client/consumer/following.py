"""Reading without a group: all partitions of some topics, those that are added later too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.consumer.partition_queue import Start
from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.consumer.assignment import Assignment
    from ottla.client.router import Router


class Following:
    def __init__(self, router: Router, assignment: Assignment, topics: tuple[str, ...]) -> None:
        self._router = router
        self._assignment = assignment
        self._topics = topics
        self._stop_listening = router.subscribe_to_changes(self._view_changed)

    async def start(self) -> None:
        """Fails if a topic does not exist."""
        for topic in self._topics:
            await self._router.topic(topic)
        self._assignment.add(self._partitions(), Start.RESET)

    def close(self) -> None:
        self._stop_listening()

    def _view_changed(self) -> None:
        # From its beginning: nobody has read anything of a partition that was not there before.
        if self._assignment.queues:
            self._assignment.add(self._partitions(), Start.EARLIEST)

    def _partitions(self) -> list[TopicPartition]:
        known = self._router.view.topics
        return [
            TopicPartition(name, index) for name in self._topics if name in known for index in known[name].partitions
        ]
