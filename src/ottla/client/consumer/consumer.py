"""The consumer: reads the partitions it was assigned, or that its group gives it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ottla.client.consumer.assignment import Assignment
from ottla.client.consumer.following import Following
from ottla.client.consumer.handout import Handout
from ottla.client.consumer.partition_queue import Reading, Start
from ottla.client.consumer.positions import EARLIEST, LATEST, offsets_at
from ottla.client.errors import ClientClosed, ClientError, broker_error
from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from typing import Self

    import pyarrow as pa

    from ottla.client.config import ConsumerConfig
    from ottla.client.consumer.record import ConsumerRecord
    from ottla.client.router import Router
    from ottla.core.ids import TopicPartition

K = TypeVar("K")
V = TypeVar("V")

_AT_A_TIME: Final = 500
_MOST_COLUMN_BYTES: Final = 64 << 20
_TURN_S: Final = 0.01
"""The event loop gets a turn at least this often, so that whatever else runs in it is not starved."""


class Consumer(Generic[K, V]):
    """`async with client.consumer("orders") as consumer:`, and then `async for record in consumer:`.

    It belongs to its event loop. One task may take records at a time.
    """

    def __init__(
        self,
        router: Router,
        config: ConsumerConfig,
        topics: Iterable[str] = (),
        *,
        key_deserializer: Callable[[bytes], Any] | None = None,
        value_deserializer: Callable[[bytes], Any] | None = None,
    ) -> None:
        self.config = config
        self._router = router
        self._topics = tuple(dict.fromkeys(topics))
        self._reading = Reading(
            max_buffers=config.consumer_queue_buffers,
            max_bytes=config.consumer_max_bytes,
            check_crcs=config.check_crcs,
            is_committed_only=config.isolation_level == "read_committed",
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
        )
        self._assignment: Assignment | None = None
        self._following: Following | None = None
        self._handout = Handout()
        self._is_closed = False
        self._turn_at = 0.0

    # Beginning and end

    async def start(self) -> None:
        """Begin to read; fails if a topic does not exist. `async with` and the first call for records do this."""
        if self._is_closed:
            raise ClientClosed("the consumer is closed; make a new one")
        if self._assignment is not None:
            return
        self._assignment = Assignment(self._router, self.config, self._reading)
        try:
            await self._follow(self._topics)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Give up the partitions. May be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        self._stop_following()
        if self._assignment is not None:
            await self._assignment.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Which partitions

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self._assigned.queues)

    async def subscribe(self, *topics: str) -> None:
        """Read these topics from now on, and no others."""
        await self.start()
        await self._follow(topics)

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions from now on, and no others; those it has already go on where they are."""
        await self.start()
        wanted = set(partitions)
        for topic in {at.topic for at in wanted}:
            known = (await self._router.topic(topic)).partitions
            for at in wanted:
                if at.topic == topic and at.partition not in known:
                    raise broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{at}, of {len(known)} partitions")
        self._stop_following()
        self._give_up(self.assignment - wanted)
        self._assigned.add(wanted)

    async def _follow(self, topics: tuple[str, ...]) -> None:
        following = Following(self._router, self._assigned, topics)
        try:
            await following.start()
        except BaseException:
            following.close()
            raise
        self._stop_following()
        self._following = following
        self._give_up(at for at in self.assignment if at.topic not in topics)

    def _stop_following(self) -> None:
        if self._following is not None:
            self._following.close()
            self._following = None

    def _give_up(self, partitions: Iterable[TopicPartition]) -> None:
        unwanted = list(partitions)
        self._handout.drop(unwanted)
        self._assigned.remove(unwanted)

    # Records

    async def poll(self, max_records: int = _AT_A_TIME, timeout_ms: float | None = None) -> list[ConsumerRecord[K, V]]:
        """The records that are here, at most so many. Waits for the first one, as long as the timeout allows.

        An error of one partition is raised once; the others go on at the next call.
        """
        if max_records < 1:
            raise ValueError(f"max_records must be at least 1, got {max_records}")
        await self._collect(max_records, self._deadline(timeout_ms))
        records: list[Any] = self._handout.all_left(max_records)
        return records

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """All records, one after the other, for ever."""
        while True:
            await self._collect(_AT_A_TIME, None)
            for record in self._handout.iterate():
                yield record

    async def fetch_arrow(self, *, max_bytes: int = _MOST_COLUMN_BYTES, timeout_ms: float | None = None) -> pa.Table:
        """What has been fetched, as columns, keys and values as bytes; a table without rows after the timeout.

        At least one buffer of one partition, and more while they take less than `max_bytes` as they were fetched.
        """
        from ottla.client.consumer.columns import SCHEMA, take_columns

        if self.config.ordered:
            raise ClientError("fetch_arrow does not merge partitions; sort its tables, or use ordered=False")
        deadline = self._deadline(timeout_ms)
        assigned = await self._begin_call()
        for at, offset in self._handout.positions_left().items():
            self.seek(at, offset)
        while True:
            assigned.raise_errors()
            table, starts = take_columns(assigned.ready, max_bytes, check_crcs=self.config.check_crcs)
            if table.num_rows:
                self._handout.columns(starts)
                return table
            if not await assigned.wait(deadline):
                return SCHEMA.empty_table()

    async def _collect(self, max_records: int, deadline: float | None) -> None:
        """Have something to hand out, unless the deadline passes before. Nothing is lost if this is cancelled."""
        assigned = await self._begin_call()
        while not self._handout.has_left:
            records = assigned.take(max_records)
            if records:
                self._handout.keep(records)
                await self._give_turn()
            elif not await assigned.wait(deadline):
                return
            elif self._is_closed:
                raise ClientClosed("the consumer was closed")

    async def _begin_call(self) -> Assignment:
        if self._assignment is None or self._is_closed:
            await self.start()
        self._handout.come_back()
        return self._assigned

    async def _give_turn(self) -> None:
        """Let fetch requests go out for the buffers that were emptied, before the caller begins its work."""
        now = asyncio.get_running_loop().time()
        if now - self._turn_at > _TURN_S or self._assigned.has_room_since_turn():
            self._turn_at = now
            await asyncio.sleep(0)

    # Positions

    def seek(self, at: TopicPartition, offset: int) -> None:
        """The next record of this partition is the one at this offset."""
        if offset < 0:
            raise ValueError(f"an offset cannot be negative, got {offset}; see seek_to_beginning and seek_to_end")
        self._assigned.queue(at)
        self._handout.drop([at])
        self._assigned.seek(at, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """To the first record there is, of these partitions or all."""
        self._seek_to(partitions, Start.EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Past the last record there is, of these partitions or all."""
        self._seek_to(partitions, Start.LATEST)

    def _seek_to(self, partitions: tuple[TopicPartition, ...], start: Start) -> None:
        wanted = partitions or tuple(self._assigned.queues)
        for at in wanted:
            self._assigned.queue(at)
        self._handout.drop(wanted)
        for at in wanted:
            self._assigned.seek_to(at, start)

    async def position(self, at: TopicPartition) -> int:
        """The offset of the next record to be handed out; waits until it is known."""
        while True:
            left = self._handout.positions_left().get(at)
            position = self._assigned.position(at) if left is None else left
            if position is not None:
                return position
            self._assigned.raise_errors()
            await self._assigned.wait(None)

    async def lag(self, at: TopicPartition) -> int:
        """How many records of this partition are still to be handed out, as far as its broker last said."""
        position = await self.position(at)
        end = self._assigned.queue(at).end_offset
        if end < 0:
            end = (await self.end_offsets(at))[at]
        return max(0, end - position)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these partitions, or of any."""
        for at in partitions or self.assignment:
            self._unread(at)
            self._assigned.pause(at)

    def resume(self, *partitions: TopicPartition) -> None:
        for at in partitions or self.assignment:
            self._assigned.resume(at)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(at for at, queue in self._assigned.queues.items() if queue.is_paused)

    def _unread(self, at: TopicPartition) -> None:
        """What was taken and not handed out will be fetched again."""
        left = self._handout.positions_left().get(at)
        if left is not None:
            self.seek(at, left)

    async def beginning_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        return await self._offsets(dict.fromkeys(partitions, EARLIEST))

    async def end_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        return await self._offsets(dict.fromkeys(partitions, LATEST))

    async def offsets_for_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after each time; None where there is none so late."""
        found = await self._offsets(times_ms)
        return {at: None if offset < 0 else offset for at, offset in found.items()}

    async def _offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return await offsets_at(self._router, times, int(self._reading.is_committed_only))

    @property
    def _assigned(self) -> Assignment:
        if self._is_closed:
            raise ClientClosed("the consumer is closed; make a new one")
        if self._assignment is None:
            raise ClientError("the consumer has not been started; use it in an `async with` block, or call start()")
        return self._assignment

    @staticmethod
    def _deadline(timeout_ms: float | None) -> float | None:
        return None if timeout_ms is None else asyncio.get_running_loop().time() + timeout_ms / 1000
