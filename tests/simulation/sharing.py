"""Members of a share group: accepted records are never redelivered, and the others are delivered eventually."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from ottla.client.connections import Purpose
from ottla.core.errors import ErrorCode
from ottla.records.reader import RecordReader
from ottla.wire.messages import share_acknowledge as acknowledging
from ottla.wire.messages import share_fetch as fetching
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

from .work import Job

if TYPE_CHECKING:
    import random

    from ottla.client.client import Client

    from .cluster import World
    from .work import Told

GROUP: Final = "sharing"
_ACCEPT, _RELEASE, _REJECT, _NOTHING = 1, 2, 3, 0
_BEAT_S: Final = 0.5
_WAIT_MS: Final = 300


class ShareLedger:
    """The settled and possibly settled records of one group."""

    def __init__(self) -> None:
        self.done: dict[tuple[int, int], float] = {}
        """Partition and offset, and when its settlement was acknowledged."""
        self.perhaps: set[tuple[int, int]] = set()
        """Records whose settlement was not acknowledged."""
        self.delivered: dict[tuple[int, int], str] = {}
        self.problems: list[str] = []

    def took(self, member: str, place: tuple[int, int], value: str, asked_s: float) -> None:
        if (known := self.delivered.setdefault(place, value)) != value:
            self.problems.append(f"share moved: {place} was {known} and is {value}")
        if place in self.done and self.done[place] < asked_s:
            self.problems.append(
                f"share came back: {member} got {value} at {place}, which was accepted before it asked"
            )

    def missing(self, told: Told) -> list[str]:
        return [
            f"share lost: {each.sent.value} at {each.sent.partition}/{each.offset} was never accepted"
            for each in told.acknowledged
            if (place := (each.sent.partition, each.offset)) not in self.done and place not in self.perhaps
            if each.offset >= 0
        ]


class ShareMember(Job):
    """Fetches one partition, and accepts, releases, rejects or keeps what it gets."""

    def __init__(
        self, world: World, name: str, host: str, told: Told, work: tuple[ShareLedger, int, random.Random]
    ) -> None:
        super().__init__(world, name, host)
        self.told = told
        self.ledger, self._partition, self._chance = work
        self._epoch = 0
        self._beat_s = 0.0
        self._leader = -1
        self._session = 0
        self._lives = 0

    async def use(self, client: Client) -> None:
        router: Any = client.admin._router
        self._lives += 1
        self._epoch, self._beat_s, self._session = 0, 0.0, 0
        while not self.is_ending:
            await self._beat(client)
            topic = await router.topic(self.told.topic)
            leader = topic.partitions[self._partition].leader
            if leader != self._leader:
                self._leader, self._session = leader, 0
            if leader < 0 or not await self._work(router, topic.topic_id):
                self._session = 0
                router.mark_stale()
                await asyncio.sleep(0.1)

    @property
    def _id(self) -> str:
        return f"{self.name}-{self._lives}"

    async def _beat(self, client: Client) -> None:
        now_s = self.world.loop.now_s
        if now_s < self._beat_s:
            return
        self._beat_s = now_s + _BEAT_S
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self._id,
            member_epoch=self._epoch,
            subscribed_topic_names=(self.told.topic,) if self._epoch == 0 else None,
        )
        answer = await client.admin._ask_coordinator(GROUP, request, lambda each: (each.error_code,))
        self._epoch = answer.member_epoch if answer.error_code == ErrorCode.NONE else 0

    async def _work(self, router: Any, topic_id: bytes) -> bool:
        """Whether the session goes on."""
        asked_s = self.world.loop.now_s
        answer = await router.ask(self._fetch(topic_id), node_id=self._leader, purpose=Purpose.FETCH)
        if answer.error_code != ErrorCode.NONE:
            return False
        self._session += 1
        for data in (part for topic in answer.responses for part in topic.partitions):
            if data.error_code != ErrorCode.NONE:
                return False
            acquired = self._acquired(data, asked_s)
            if acquired and not await self._acknowledge(router, topic_id, acquired):
                return False
        return True

    def _fetch(self, topic_id: bytes) -> Any:
        part = fetching.FetchPartition(partition_index=self._partition, acknowledgement_batches=())
        return fetching.ShareFetchRequest(
            group_id=GROUP,
            member_id=self._id,
            share_session_epoch=self._session,
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=20,
            batch_size=20,
            share_acquire_mode=1,
            topics=(fetching.FetchTopic(topic_id=topic_id, partitions=(part,)),) if self._session == 0 else (),
            forgotten_topics_data=(),
        )

    def _acquired(self, data: Any, asked_s: float) -> list[int]:
        values = {each.offset: each.value for each in RecordReader(bytes(data.records or b""))}
        offsets = [
            offset
            for each in data.acquired_records
            for offset in range(each.first_offset, each.last_offset + 1)
            if offset in values
        ]
        for offset in offsets:
            self.ledger.took(self.name, (self._partition, offset), values[offset].decode(), asked_s)
        self.world.loop.note(self.name, "acquired", offsets)
        return offsets

    async def _acknowledge(self, router: Any, topic_id: bytes, offsets: list[int]) -> bool:
        await asyncio.sleep(self._chance.choice((0, 0, 0.01, 0.3)))
        kind = self._chance.choices((_ACCEPT, _RELEASE, _REJECT, _NOTHING), (16, 2, 1, 1))[0]
        if kind == _NOTHING:
            return True
        places = {(self._partition, offset) for offset in offsets}
        if kind != _RELEASE:
            self.ledger.perhaps |= places
        batches = tuple(
            acknowledging.AcknowledgementBatch(first_offset=each, last_offset=each, acknowledge_types=(kind,))
            for each in offsets
        )
        part = acknowledging.AcknowledgePartition(partition_index=self._partition, acknowledgement_batches=batches)
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=self._id,
            share_session_epoch=self._session,
            topics=(acknowledging.AcknowledgeTopic(topic_id=topic_id, partitions=(part,)),),
        )
        answer = await router.ask(request, node_id=self._leader, purpose=Purpose.FETCH)
        codes = {answer.error_code, *(each.error_code for topic in answer.responses for each in topic.partitions)}
        self.world.loop.note(self.name, "acknowledged", kind, sorted(codes))
        self._session += 1
        if codes != {ErrorCode.NONE}:
            return False
        if kind != _RELEASE:
            self.ledger.done |= dict.fromkeys(places, self.world.loop.now_s)
        return True


async def drain(ledger: ShareLedger, told: Told, for_s: float) -> None:
    """Wait until every record is settled, or the timeout."""
    for _ in range(int(for_s / 0.2)):
        if not ledger.missing(told):
            return
        await asyncio.sleep(0.2)
