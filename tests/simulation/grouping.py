"""Members of consumer groups, classic and KIP-848, and their invariants."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from ottla.client.errors import ClientError
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

from .work import Job

if TYPE_CHECKING:
    from ottla.client.client import Client

    from .cluster import World
    from .work import Told

_SESSION_S: Final = 3.0
_GROUP_FOR_S: Final = 1.5
_RETRIABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)


class GroupLedger:
    """The confirmed commits of one group, and the records of its members."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.committed: dict[TopicPartition, int] = {}
        self.seen: set[tuple[int, int]] = set()
        self.problems: list[str] = []

    def commits(self, offsets: dict[TopicPartition, int]) -> None:
        for at, offset in offsets.items():
            self.committed[at] = max(self.committed.get(at, 0), offset)

    def begins(self, at: TopicPartition, offset: int, committed: int) -> None:
        if offset < committed:
            self.problems.append(f"went back: {self.group} reads {at} at {offset}, though {committed} was committed")


class ClassicMember(Job):
    """Reads with others of its group, and commits what it has read."""

    def __init__(self, world: World, name: str, host: str, told: Told, ledger: GroupLedger) -> None:
        super().__init__(world, name, host)
        self.told = told
        self.ledger = ledger

    async def use(self, client: Client) -> None:
        consumer: Any = client.consumer(
            self.told.topic,
            group=self.ledger.group,
            auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=3_000,
            heartbeat_interval_ms=500,
            consumer_max_wait_ms=500,
        )
        async with consumer:
            while not self.is_ending:
                # Whatever is read now cannot lie before what was committed when the assignment began.
                known = dict(self.ledger.committed) if not consumer.assignment else {}
                records = await consumer.poll(timeout_ms=800)
                upto: dict[TopicPartition, int] = {}
                for record in records:
                    at = TopicPartition(record.topic, record.partition)
                    if at not in upto and at in known:
                        self.ledger.begins(at, record.offset, known[at])
                    upto[at] = record.offset + 1
                    self.ledger.seen.add((record.partition, record.offset))
                if upto:
                    await consumer.commit(upto)
                    self.ledger.commits(upto)


class ModernMember(Job):
    """KIP-848 heartbeats: a member that joined and sends heartbeats in time is never dropped.

    Now and then there is a new group, which all members join at the same moment.
    """

    def __init__(self, world: World, name: str, host: str, told: Told, group: str) -> None:
        super().__init__(world, name, host)
        self.told = told
        self._groups = group
        self._group = group
        self._member_id = name.ljust(22, "x")
        self._owned: tuple[TopicPartitions, ...] = ()

    async def use(self, client: Client) -> None:
        epoch, heard_s = 0, -1000.0
        while not self.is_ending:
            began_s = self.world.loop.now_s
            if (group := f"{self._groups}-{int(began_s // _GROUP_FOR_S)}") != self._group:
                self._group, self._owned, epoch = group, (), 0
            answer = await self._beat(client, epoch)
            if answer is None:
                pass
            elif answer.error_code == ErrorCode.NONE:
                epoch, heard_s = answer.member_epoch, began_s
                if answer.assignment is not None:
                    # Revoked partitions are released at once.
                    self._owned = tuple(
                        TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                        for each in answer.assignment.topic_partitions
                    )
            elif answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                if epoch > 0 and self.world.loop.now_s - heard_s < _SESSION_S * 0.8:
                    self.problems.append(
                        f"forgotten: {self.name} of {self._group}, heard of {self.world.loop.now_s - heard_s:.1f} s ago"
                    )
                epoch = 0
            elif answer.error_code == ErrorCode.FENCED_MEMBER_EPOCH:
                epoch = 0
            next_group_s = _GROUP_FOR_S - self.world.loop.now_s % _GROUP_FOR_S
            await asyncio.sleep(min(0.5 if epoch else 0.1, next_group_s + 0.001))
        await self._beat(client, -1)

    async def _beat(self, client: Client, epoch: int) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=2_500 if epoch == 0 else -1,
            subscribed_topic_names=(self.told.topic,) if epoch == 0 else None,
            topic_partitions=() if epoch == 0 else self._owned,
        )
        try:
            return await client.admin._ask_coordinator(self._group, request, lambda answer: (answer.error_code,))
        except ClientError:
            return None
