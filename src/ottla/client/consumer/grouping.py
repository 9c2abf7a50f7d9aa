"""A consumer and its group: membership if it subscribes, and commits in both cases."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.client.consumer.partition_queue import Start
from ottla.client.group.commits import Commits
from ottla.client.group.interface import Committed, GroupProgress
from ottla.client.group.member import GroupMember
from ottla.client.group.offsets import GroupOffsets
from ottla.client.group.state import NO_GENERATION

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ottla.client.config import ConsumerConfig
    from ottla.client.consumer.assignment import Assignment
    from ottla.client.consumer.handout import Handout
    from ottla.client.errors import ClientError
    from ottla.client.group.interface import RebalanceListener
    from ottla.client.group.selection import Selection
    from ottla.client.router import Router
    from ottla.core.ids import TopicPartition


class ManualCommitter:
    """A consumer with manual assignment commits without a member id."""

    generation = NO_GENERATION
    member_id = ""
    instance_id = None
    is_lost = False

    def __init__(self, group: str, queues: Collection[TopicPartition]) -> None:
        self.group = group
        self.owned = queues

    def owned_since(self, at: TopicPartition) -> int | None:  # noqa: ARG002
        return NO_GENERATION


class Grouping:
    """The Holder of a membership (see `ottla.client.group.interface`)."""

    def __init__(self, router: Router, config: ConsumerConfig, assignment: Assignment, handout: Handout) -> None:
        group = config.group or ""
        self._router = router
        self._config = config
        self._assignment = assignment
        self._handout = handout
        self._offsets = GroupOffsets(router, group)
        as_nobody = ManualCommitter(group, assignment.queues.keys())
        joined = asyncio.Event()
        joined.set()
        self._alone = Commits(self._offsets, as_nobody, config, self.positions, joined)
        self._committing: asyncio.Task[None] | None = None
        self._member: GroupMember | None = None
        self._error: ClientError | None = None
        assignment.locator.committed = self._committed_offsets

    # Called by the consumer

    async def subscribe(self, selection: Selection, listener: RebalanceListener | None) -> None:
        for topic in selection.named or ():
            await self._router.topic(topic)
        if self._member is not None and listener is None and self._error is None:
            self._member.subscribe(selection)
            return
        await self.leave()
        self._assignment.remove(list(self._assignment.queues))
        self._member = GroupMember(self._router, self._config, selection, self, listener)
        await self._member.start()

    async def go_alone(self) -> None:
        """Switch to manual assignment."""
        if self._member is not None:
            await self.leave()
        if self._config.auto_commit and self._committing is None:
            self._committing = asyncio.create_task(self._alone.keep_committing())

    async def leave(self) -> None:
        """Release all partitions; commits first, with auto_commit."""
        try:
            if self._member is not None:
                await self._member.close()
        finally:
            self._member = self._error = None
        if self._committing is not None:
            await self._stop_alone()
            await self._alone.commit_positions(list(self._assignment.queues))

    async def poll_begins(self) -> None:
        """The application has processed the delivered records."""
        if self._error is not None:
            raise self._error
        if self._member is not None:
            await self._member.poll_begins()

    def poll_ends(self) -> None:
        if self._member is not None:
            self._member.poll_ends(is_busy=self._handout.has_any)

    async def commit(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        commits = self._alone if self._member is None else self._member
        await commits.commit(offsets)

    def progress(self, offsets: Mapping[TopicPartition, Committed]) -> GroupProgress:
        group = self._config.group or ""
        if self._member is None:
            return GroupProgress(group, offsets)
        return GroupProgress(
            group, offsets, self._member.generation, self._member.member_id, self._config.group_instance_id
        )

    async def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Committed]:
        return await self._offsets.fetch(partitions)

    def handed_out(self) -> dict[TopicPartition, Committed]:
        """Everything that was delivered: a manual commit marks it as processed."""
        return self._up_to(self._handout.positions_left())

    # Called by the membership

    def add(self, partitions: Collection[TopicPartition]) -> None:
        self._assignment.add(partitions, Start.COMMITTED, is_held_back=True)

    def deliver(self, partitions: Collection[TopicPartition]) -> None:
        self._assignment.deliver(partitions)

    def hold_back(self, partitions: Collection[TopicPartition]) -> None:
        left = self._handout.positions_left()
        self._handout.drop(partitions)
        for at in partitions:
            if at in left:
                # Taken but not delivered: the partition's next owner starts with these records.
                self._assignment.seek(at, left[at])
        self._assignment.hold_back(partitions)

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        self._assignment.remove(partitions)

    def positions(self) -> dict[TopicPartition, Committed]:
        """Positions up to the records that the application may still be processing."""
        return self._up_to(self._handout.positions_in_hand())

    def fail(self, error: ClientError) -> None:
        self._error = error
        self._assignment.report(error)

    # Offsets

    def _up_to(self, firsts: Mapping[TopicPartition, int]) -> dict[TopicPartition, Committed]:
        found = {}
        for at in self._assignment.queues:
            offset = firsts.get(at, self._assignment.position(at))
            if offset is not None:
                found[at] = Committed(offset)
        return found

    async def _committed_offsets(self, partitions: list[TopicPartition]) -> Mapping[TopicPartition, int]:
        return {at: committed.offset for at, committed in (await self._offsets.fetch(partitions)).items()}

    async def _stop_alone(self) -> None:
        task, self._committing = self._committing, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
