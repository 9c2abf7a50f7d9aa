"""Positions and pausing of a consumer's partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.client.consumer.handout import Handout
from ottla.client.consumer.partition_queue import Start
from ottla.client.consumer.positions import EARLIEST, LATEST, offsets_at
from ottla.client.errors import ClientClosed, ClientError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ottla.client.config import ConsumerConfig
    from ottla.client.consumer.assignment import Assignment
    from ottla.client.consumer.partition_queue import Reading
    from ottla.client.router import Router
    from ottla.core.ids import TopicPartition

CLOSED: Final = "the consumer is closed; create a new one"
_NOT_STARTED: Final = "the consumer has not been started; use it in an `async with` block, or call start()"


class Seeking:
    """The part of a consumer that concerns positions."""

    def __init__(self, router: Router, config: ConsumerConfig, reading: Reading) -> None:
        self.config = config
        self._router = router
        self._reading = reading
        self._assignment: Assignment | None = None
        self._handout = Handout()
        self._is_closed = False

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self._assigned.queues)

    def seek(self, at: TopicPartition, offset: int, *, until: int | None = None) -> None:
        """Continue with this offset. Nothing is fetched from `until` on; the last fetch may return later records."""
        if offset < 0:
            raise ValueError(f"an offset cannot be negative, got {offset}; see seek_to_beginning and seek_to_end")
        self._assigned.queue(at)
        self._handout.drop([at])
        self._assigned.seek(at, offset, until)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Seek these partitions, or all, to the first available record."""
        self._seek_to(partitions, Start.EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Seek these partitions, or all, past the last record."""
        self._seek_to(partitions, Start.LATEST)

    def _seek_to(self, partitions: tuple[TopicPartition, ...], start: Start) -> None:
        wanted = partitions or tuple(self._assigned.queues)
        for at in wanted:
            self._assigned.queue(at)
        self._handout.drop(wanted)
        for at in wanted:
            self._assigned.seek_to(at, start)

    async def position(self, at: TopicPartition) -> int:
        """The offset of the next record to be delivered; waits until it is known."""
        while True:
            left = self._handout.positions_left().get(at)
            position = self._assigned.position(at) if left is None else left
            if position is not None:
                return position
            self._assigned.raise_errors()
            await self._assigned.wait(None)

    async def lag(self, at: TopicPartition) -> int:
        """The lag of this partition as of the last fetch."""
        position = await self.position(at)
        end = self._assigned.queue(at).end_offset
        if end < 0:
            end = (await self.end_offsets(at))[at]
        return max(0, end - position)

    def pause(self, *partitions: TopicPartition) -> None:
        """Pause these partitions, or all."""
        wanted = partitions or tuple(self.assignment)
        for at in wanted:
            self._assigned.pause(at)
        self._unread(wanted)

    def resume(self, *partitions: TopicPartition) -> None:
        for at in partitions or self.assignment:
            self._assigned.resume(at)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(at for at, queue in self._assigned.queues.items() if queue.is_paused)

    async def beginning_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        return await self._offsets(dict.fromkeys(partitions, EARLIEST))

    async def end_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        return await self._offsets(dict.fromkeys(partitions, LATEST))

    async def offsets_for_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after each time; None if there is none."""
        found = await self._offsets(times_ms)
        return {at: None if offset < 0 else offset for at, offset in found.items()}

    async def _offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return await offsets_at(self._router, times, int(self._reading.is_committed_only))

    @property
    def _assigned(self) -> Assignment:
        if self._is_closed:
            raise ClientClosed(CLOSED)
        if self._assignment is None:
            raise ClientError(_NOT_STARTED)
        return self._assignment

    def _unread(self, partitions: Collection[TopicPartition]) -> None:
        """Fetch the records of these partitions again that were taken but not delivered."""
        left = {at: offset for at, offset in self._handout.positions_left().items() if at in partitions}
        self._handout.drop(left)
        for at, offset in left.items():
            self._assigned.seek(at, offset, self._assigned.queue(at).until)
