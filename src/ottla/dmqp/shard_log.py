"""A shard in the broker: a partition, and a cursor that is a committed offset of the group `__dmqp.TOPIC`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.interfaces.fetched import READ_COMMITTED, fetch, records_in
from ottla.broker.interfaces.in_process_requests import LocalClient, raise_refusal
from ottla.broker.interfaces.partition_facts import Bounds, bounds, log_end
from ottla.broker.interfaces.protocol_servers import GROUP_PREFIX
from ottla.broker.roles import NO_EPOCH
from ottla.core.errors import (
    ApiError,
    ErrorCode,
    LeaderNotAvailable,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    RequestTimedOut,
)
from ottla.dmqp.left_behind import LeftBehind, parse
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.broker import Broker
    from ottla.broker.interfaces.fetched import Piece
    from ottla.dmqp.fencing import Producer, PushFence
    from ottla.records.encode import BatchBuilder

_CLIENT_ID: Final = "dmqp"
_PRODUCE_BY_NAME: Final = 12
_COMMIT_BY_NAME: Final = 9
_FETCH_OFFSETS_BY_NAME: Final = 9
_ALL: Final = -1
_TIMEOUT_MS: Final = 30_000
_READ_BYTES: Final = 128 * 1024
_SEQUENCE_MASK: Final = 0x7FFFFFFF
_NO_PRODUCER: Final = -1, -1


class Cursor(NamedTuple):
    offset: int
    """The offset of the first message that was neither popped nor skipped."""
    sequence: int
    """The sequence id of the message before it."""
    left_behind: LeftBehind = LeftBehind()
    """The skipped delayed messages before it."""


class ShardLog:
    def __init__(self, broker: Broker, topic: str, shard: int, principal: str) -> None:
        self.topic = topic
        self.shard = shard
        self._broker = broker
        self._seen = Bounds(0, 0)
        _, self.epoch = broker.topics.partition(topic, 0).leader
        """The leader epoch of the first partition in which this broker serves the topic's shards."""
        self._client = LocalClient(broker, _CLIENT_ID, ("127.0.0.1", 0), principal)
        self._fence: PushFence | None = None
        self._producer = _NO_PRODUCER
        self._next_push = 0
        """The producer's sequence number of the next record; unrelated to sequence ids."""
        self._is_in_doubt = False
        """Whether the outcome of a push is unknown, so that the next sequence number is, too."""
        self._is_last_sent = False
        """Whether the last append reached the point where its records may have been sent to the log."""

    async def settle(self) -> None:
        """Check the log before this broker serves the shard.

        Raises LeaderNotAvailable: without a leader the end is unknown, and the cursor must not be reset to it; and an
        uncommitted push has a sequence id that must not be assigned again.
        """
        partition = self._broker.topics.partition(self.topic, self.shard)
        end = 0
        if self.epoch != NO_EPOCH:
            if partition.leader[0] not in self._broker.topology.node_ids:
                raise LeaderNotAvailable(f"{partition.at} has no leader")
            end = await log_end(self._broker, partition)
        await self.look()
        if self.end < end:
            raise LeaderNotAvailable(f"{partition.at}: offset {end - 1} is not committed yet")

    async def look(self) -> None:
        """Load start and end of the log. If another node leads, `start` and `end` are as of that time."""
        partition = self._broker.topics.partition(self.topic, self.shard)
        [self._seen] = (await bounds(self._broker, [partition])).values()

    @property
    def _is_led_here(self) -> bool:
        return self._broker.topics.partition(self.topic, self.shard).term is not None

    @property
    def start(self) -> int:
        if self._is_led_here:
            return self._broker.topics.partition(self.topic, self.shard).log.start_offset
        return self._seen.start

    @property
    def end(self) -> int:
        if self._is_led_here:
            return self._broker.topics.partition(self.topic, self.shard).high_watermark
        return self._seen.end

    def _check_in_charge(self) -> None:
        """Check that this node still serves the topic's shards: in a cluster one node does, while its lease lasts."""
        first = self._broker.topics.partition(self.topic, 0)
        first.check_leads()
        _, epoch = first.leader
        if epoch != self.epoch:
            raise NotLeaderOrFollower(f"{self.topic} was served by another broker since leader epoch {self.epoch}")

    @property
    def max_batch_bytes(self) -> int:
        return self._broker.topics.by_name[self.topic].config.log.max_message_bytes

    @property
    def log_end(self) -> int | None:
        """The log end offset, including uncommitted records; None if another node leads the partition."""
        if not self._is_led_here:
            return None
        return self._broker.topics.partition(self.topic, self.shard).log.next_offset

    def now_ms(self) -> int:
        return self._broker.clock.now_ms()

    def push_as(self, producer: Producer, fence: PushFence) -> None:
        """Mark appended records as this producer's, which `fence` has made the only one."""
        self._producer, self._fence = producer, fence
        self._next_push = 0
        self._is_in_doubt = False

    async def append(self, builder: BatchBuilder) -> None:
        """Append records; when this returns, the full ISR has them, and they are durable according to the topic's flush
        policy.
        """
        self._is_last_sent = False
        if self._is_in_doubt:
            await self._renew()
        self._check_in_charge()
        self._is_last_sent = True
        count, self._is_in_doubt = builder.count, self._fence is not None
        await self._produce(self._built(builder))
        self._next_push = (self._next_push + count) & _SEQUENCE_MASK
        self._is_in_doubt = False
        try:
            self._check_in_charge()
        except NotLeaderOrFollower as lost:
            # Another broker may have assigned the same sequence ids by then, and the records may be in the log.
            raise RequestTimedOut(str(lost)) from lost

    def not_appended(self) -> None:
        """The records of the last, failed append are not in the log. Those of an earlier one may be."""
        if self._is_last_sent:
            self._is_in_doubt = False

    async def _renew(self) -> None:
        fence = self._fence
        assert fence is not None  # noqa: S101 - for mypy: without one there is no doubt
        try:
            self.push_as(await fence.renew(self.shard), fence)
        except ApiError as refused:
            raise NotEnoughReplicas(f"{self.topic}-{self.shard}: the fate of a push is unknown: {refused}") from refused

    def _built(self, builder: BatchBuilder) -> bytearray:
        if self._fence is None:
            return builder.build()
        producer_id, epoch = self._producer
        return builder.build(producer_id=producer_id, producer_epoch=epoch, base_sequence=self._next_push)

    async def _produce(self, batch: bytearray) -> None:
        data = TopicProduceData(
            name=self.topic, partition_data=(PartitionProduceData(index=self.shard, records=memoryview(batch)),)
        )
        request = ProduceRequest(acks=_ALL, timeout_ms=_TIMEOUT_MS, topic_data=(data,))
        answer = await self._client.ask(request, _PRODUCE_BY_NAME)
        [result] = answer.responses[0].partition_responses
        raise_refusal(result.error_code, result.error_message)

    async def read(self, offset: int, isolation_level: int = READ_COMMITTED) -> Iterator[Piece]:
        """Some records from `offset` on, decoded lazily; empty at the end."""
        [data] = await fetch(
            self._client, self.topic, {self.shard: offset}, max_bytes=_READ_BYTES, isolation_level=isolation_level
        )
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and offset < self.end:
            await self.look()
            if offset < self.start:
                return await self.read(self.start, isolation_level)
        raise_refusal(data.error_code)
        return records_in(data, offset)

    async def cursor(self) -> Cursor:
        topics = (OffsetFetchRequestTopics(name=self.topic, partition_indexes=(self.shard,)),)
        group = OffsetFetchRequestGroup(group_id=GROUP_PREFIX + self.topic, topics=topics)
        answer = await self._client.ask(OffsetFetchRequest(groups=(group,)), _FETCH_OFFSETS_BY_NAME)
        [found] = answer.groups
        raise_refusal(found.error_code)
        [part] = found.topics[0].partitions
        raise_refusal(part.error_code)
        if part.committed_offset < 0:
            return Cursor(self.start, 0)
        sequence, left_behind = parse(part.metadata or "")
        # A power failure may have lost messages before the cursor.
        return Cursor(min(part.committed_offset, self.end), sequence, left_behind.until(self.end))

    async def take_over(self) -> Cursor:
        """Fence brokers that served the shard before, and load the cursor."""
        cursor = await self.cursor()
        if self.epoch == NO_EPOCH:
            return cursor
        # The first commit in an epoch only fences. Until it arrives, the previous broker may move the cursor.
        await self.commit(cursor)
        return await self.cursor()

    async def commit(self, cursor: Cursor) -> None:
        part = OffsetCommitRequestPartition(
            partition_index=self.shard,
            committed_offset=cursor.offset,
            committed_leader_epoch=self.epoch,
            committed_metadata=cursor.left_behind.text(cursor.sequence),
        )
        request = OffsetCommitRequest(
            group_id=GROUP_PREFIX + self.topic,
            member_id="",
            topics=(OffsetCommitRequestTopic(name=self.topic, partitions=(part,)),),
        )
        self._check_in_charge()
        answer = await self._client.ask(request, _COMMIT_BY_NAME)
        # Another node may have started from the previous commit: the messages must not be delivered then.
        self._check_in_charge()
        [result] = answer.topics[0].partitions
        raise_refusal(ErrorCode(result.error_code))
