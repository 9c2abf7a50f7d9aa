"""The consumer: reads assigned partitions, or those of its group membership."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Generic

from ottla.client.consumer.assignment import Assignment
from ottla.client.consumer.following import Following
from ottla.client.consumer.grouping import Grouping
from ottla.client.consumer.partition_queue import Reading, Start
from ottla.client.consumer.seeking import CLOSED, Seeking
from ottla.client.errors import ClientClosed, ClientError, broker_error
from ottla.client.group.interface import Committed
from ottla.client.group.selection import Selection
from ottla.client.serializers import NotReady
from ottla.client.typing import K, V
from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
    from typing import Self

    import pyarrow as pa

    from ottla.client.config import ConsumerConfig
    from ottla.client.consumer.record import ConsumerRecord
    from ottla.client.group.interface import GroupProgress, RebalanceListener
    from ottla.client.router import Router
    from ottla.core.ids import TopicPartition

_AT_A_TIME: Final = 500
_MOST_COLUMN_BYTES: Final = 64 << 20
_TURN_S: Final = 0.01
"""Yield to the event loop at least this often, so that other tasks are not starved."""


class Consumer(Seeking, Generic[K, V]):
    """`async with client.consumer("orders") as consumer:`, and then `async for record in consumer:`.

    It is bound to its event loop. Only one task at a time may take records.
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
        super().__init__(
            router,
            config,
            Reading(
                max_buffers=config.consumer_queue_buffers,
                max_bytes=config.consumer_max_bytes,
                check_crcs=config.check_crcs,
                is_committed_only=config.isolation_level == "read_committed",
                key_deserializer=key_deserializer,
                value_deserializer=value_deserializer,
            ),
        )
        self._topics = tuple(dict.fromkeys(topics))
        self._is_subscribed = False
        self._following: Following | None = None
        self._grouping: Grouping | None = None
        self._commits: set[asyncio.Task[None]] = set()
        self._turn_at = 0.0
        self._closing = asyncio.Lock()

    # Start and close

    async def start(self) -> None:
        """Start reading; fails if a topic does not exist. `async with` and the first call for records do this."""
        if self._is_closed:
            raise ClientClosed(CLOSED)
        if self._assignment is not None:
            return
        self._assignment = Assignment(self._router, self.config, self._reading)
        if self.config.group is not None:
            self._grouping = Grouping(self._router, self.config, self._assignment, self._handout)
        try:
            if self._topics:
                await self.subscribe(*self._topics)
        except BaseException:
            await self.close()
            raise

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    async def close(self) -> None:
        """Commit, with auto_commit, and release the partitions. Idempotent."""
        self._handout.come_back()
        await self._close()

    async def _close(self) -> None:
        async with self._closing:
            if self._is_closed:
                return
            self._stop_following()
            try:
                if self._grouping is not None:
                    await asyncio.gather(*self._commits, return_exceptions=True)
                    await self._grouping.leave()
            finally:
                self._is_closed = True
                if self._assignment is not None:
                    await self._assignment.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._handout.come_back()
        # After an error, records being processed are not committed.
        await self._close()

    # Subscription and assignment

    async def subscribe(
        self, *topics: str, pattern: str | None = None, listener: RebalanceListener | None = None
    ) -> None:
        """Subscribe to these topics, or to those whose whole name matches the pattern, replacing the subscription.

        The group distributes their partitions among its members; without a group this consumer reads all of them.
        """
        selection = Selection(topics, pattern)
        await self.start()
        if self._grouping is None:
            await self._follow(selection)
        else:
            await self._grouping.subscribe(selection, listener)
        self._is_subscribed = True

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign these partitions, replacing the assignment; partitions kept continue at their position."""
        await self.start()
        wanted = set(partitions)
        for topic in sorted({at.topic for at in wanted}):
            known = (await self._router.topic(topic)).partitions
            for at in wanted:
                if at.topic == topic and at.partition not in known:
                    raise broker_error(
                        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no partition {at} (the topic has {len(known)})"
                    )
        self._stop_following()
        if self._grouping is not None:
            await self._grouping.go_alone()
        self._is_subscribed = False
        self._give_up(self.assignment - wanted)
        self._assigned.add(wanted)

    async def unsubscribe(self) -> None:
        """Leave the group and clear the assignment."""
        self._stop_following()
        if self._grouping is not None:
            await self._grouping.leave()
        self._is_subscribed = False
        self._give_up(self.assignment)

    def _give_up(self, partitions: Collection[TopicPartition]) -> None:
        self._handout.drop(partitions)
        self._assigned.remove(partitions)

    async def _follow(self, selection: Selection) -> None:
        following = Following(self._router, self._assigned, selection)
        try:
            partitions = await following.start()
        except BaseException:
            following.close()
            raise
        self._stop_following()
        self._following = following
        self._give_up(self.assignment.difference(partitions))
        self._assigned.add(partitions, Start.RESET)

    def _stop_following(self) -> None:
        if self._following is not None:
            self._following.close()
            self._following = None

    # Records

    async def poll(self, max_records: int = _AT_A_TIME, timeout_ms: float | None = None) -> list[ConsumerRecord[K, V]]:
        """The available records, at most `max_records`. Waits for the first one up to the timeout.

        An error of one partition is raised once; the others continue at the next call.
        """
        if max_records < 1:
            raise ValueError(f"max_records must be at least 1, got {max_records}")
        try:
            await self._collect(max_records, _deadline(timeout_ms))
            return self._handout.all_left(max_records)
        finally:
            self._end_call()

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """All records, without end."""
        while True:
            for record in await self.take():
                yield record

    async def take(self, max_records: int = _AT_A_TIME) -> Iterator[ConsumerRecord[K, V]]:
        """The available records, to be processed one by one; waits for the first."""
        try:
            await self._collect(max_records, None)
        finally:
            self._end_call()
        return self._handout.iterate()

    async def fetch_arrow(self, *, max_bytes: int = _MOST_COLUMN_BYTES, timeout_ms: float | None = None) -> pa.Table:
        """The fetched records as columns, keys and values as bytes; an empty table after the timeout.

        At least one buffer of one partition, and more while their fetched size is less than `max_bytes`.
        """
        from ottla.client.consumer.columns import SCHEMA, take_columns

        if self.config.ordered:
            raise ClientError("fetch_arrow does not merge partitions; sort its tables, or use ordered=False")
        table = SCHEMA.empty_table()
        try:
            assigned = await self._begin_call()
            await self._give_turn()
            self._unread(assigned.queues)
            deadline = _deadline(timeout_ms)
            while not table.num_rows:
                assigned.raise_errors()
                table, starts = take_columns(assigned.ready, max_bytes, check_crcs=self.config.check_crcs)
                self._handout.columns(starts)
                if not table.num_rows and not await self._wait(deadline):
                    break
        finally:
            self._end_call()
        return table

    async def _collect(self, max_records: int, deadline: float | None) -> None:
        """Wait until there are records to deliver, or the deadline passes. Nothing is lost if this is cancelled."""
        assigned = await self._begin_call()
        while not self._handout.has_left:
            try:
                records = assigned.take(max_records)
            except NotReady as needed:
                await asyncio.to_thread(needed.prepare)
                continue
            if records:
                self._handout.keep(records)
                await self._give_turn()
            elif not await self._wait(deadline):
                return

    async def _begin_call(self) -> Assignment:
        if self._assignment is None or self._is_closed:
            await self.start()
        if not self._is_subscribed and not self._assigned.queues:
            raise ClientError("no topics or partitions; subscribe to topics or assign partitions first")
        self._handout.come_back()
        if self._grouping is not None:
            await self._grouping.poll_begins()
        return self._assigned

    def _end_call(self) -> None:
        if self._grouping is not None:
            self._grouping.poll_ends()

    async def _wait(self, deadline: float | None) -> bool:
        is_in_time = await self._assigned.wait(deadline)
        if self._is_closed:
            raise ClientClosed("the consumer was closed while it waited for records")
        return is_in_time

    async def _give_turn(self) -> None:
        """Send fetches for the emptied buffers before the records are processed."""
        now = asyncio.get_running_loop().time()
        if now - self._turn_at > _TURN_S or self._assigned.has_room_since_turn():
            self._turn_at = now
            await asyncio.sleep(0)

    # Commits

    async def commit(self, offsets: Mapping[TopicPartition, int | Committed] | None = None) -> None:
        """Commit everything that was delivered, or the given offsets.

        Raises CommitFailed if a partition was assigned to another member.
        """
        await self._group.commit(self._to_commit(offsets))

    def commit_soon(self, offsets: Mapping[TopicPartition, int | Committed] | None = None) -> None:
        """Commit without waiting; an error is raised at the next call for records."""
        task = asyncio.create_task(self._group.commit(self._to_commit(offsets)))
        self._commits.add(task)
        task.add_done_callback(self._committed_soon)

    def progress(self, offsets: Mapping[TopicPartition, int | Committed] | None = None) -> GroupProgress:
        """The offsets that `commit` would commit, for a producer's transaction."""
        return self._group.progress(self._to_commit(offsets))

    async def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, Committed]:
        """The group's committed offsets of these partitions, or all."""
        return await self._group.committed(partitions or tuple(self.assignment))

    def _to_commit(self, offsets: Mapping[TopicPartition, int | Committed] | None) -> dict[TopicPartition, Committed]:
        if offsets is None:
            return self._group.handed_out()
        return {at: Committed(given) if isinstance(given, int) else given for at, given in offsets.items()}

    def _committed_soon(self, task: asyncio.Task[None]) -> None:
        self._commits.discard(task)
        if not task.cancelled() and isinstance(error := task.exception(), Exception) and self._assignment is not None:
            self._assignment.report(error)

    @property
    def _group(self) -> Grouping:
        if self._grouping is None:
            raise ClientError("commit needs a started consumer with a group: client.consumer(…, group=…)")
        return self._grouping


def _deadline(timeout_ms: float | None) -> float | None:
    return None if timeout_ms is None else asyncio.get_running_loop().time() + timeout_ms / 1000
