"""The registry's state: read from the `_schemas` topic, and changed by records written to it.

There is one writer at a time. In a cluster a node becomes the writer by taking the next epoch of a transactional id,
writing a record with it, which fences every earlier writer, and then reading to the end of the topic. Changes planned
from that state stay valid until they are appended: if another node had written meanwhile, the append would be fenced.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ottla.broker.administration import NewTopic
from ottla.broker.interfaces.fetched import fetch, records_in
from ottla.broker.interfaces.in_process_requests import LocalClient, Refused, raise_refusal
from ottla.broker.interfaces.partition_facts import bounds
from ottla.broker.requests.answers import settled
from ottla.core.errors import ApiError, ErrorCode, LeaderNotAvailable, OffsetNotAvailable
from ottla.records.encode import BatchBuilder
from ottla.registry import records
from ottla.registry.errors import InvalidSchema, Refusal
from ottla.registry.state import State
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.schemas.validating import SchemaValidation
    from ottla.records.reader import Record as ReadRecord
    from ottla.registry.changes import Planned
    from ottla.registry.records import Record
    from ottla.wire.codec import RequestFor
    from ottla.wire.declare import Response

_logger: Final = logging.getLogger(__name__)

TOPIC: Final = "_schemas"
TRANSACTIONAL_ID: Final = "__schema_registry"
_CONFIGS: Final = {"cleanup.policy": "compact"}
_FETCH_BYTES: Final = 4 << 20
_PRODUCE_BY_NAME: Final = 12
_TIMEOUT_MS: Final = 10_000
_PATIENCE_S: Final = 15.0
_PAUSE_S: Final = 0.05
_FRESH_S: Final = 0.5
"""The maximum age in seconds of the state while another node leads the partition; a failed lookup always refreshes it.
"""
_NOT_APPENDED: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Errors after which nothing is in the log.

Not NOT_LEADER_OR_FOLLOWER: a leader also answers it if it lost its leadership while it waited for the ISR.
"""
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})

T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound="Response")


class UnguardedClient(LocalClient):
    """Sends requests as the broker itself; authorization was done before."""

    async def ask(self, request: RequestFor[ResponseT], version: int | None = None) -> ResponseT:
        context = self.context(request, version)
        handler = self._broker.dispatcher.unguarded(request.API)
        answer: ResponseT = await settled(handler(self._broker, request, context))
        return answer


class _Writer(NamedTuple):
    """This node's right to write, until another node takes it."""

    producer_id: int
    epoch: int
    sequence: int
    end: int
    """The offset after the writer's last record: records beyond it were written by another node."""


class Store:
    def __init__(self, broker: Broker) -> None:
        self.state = State()
        self.written = 0
        self.ignored = 0
        """Records that could not be read."""
        self._broker = broker
        self._client = UnguardedClient(broker, "schema-registry", ("127.0.0.1", 0))
        self._lock = asyncio.Lock()
        self._topic_id: object = None
        self._epoch = 0
        """The leader epoch in which the state was read."""
        self._position = 0
        self._read_at_s = 0.0
        self._writer: _Writer | None = None

    @cached_property
    def validation(self) -> SchemaValidation:
        from ottla.broker.schemas.validating import SchemaValidation  # rarely needed

        return SchemaValidation(self._broker, self)

    # Reading

    async def refresh(self, *, is_needed: bool = False) -> None:
        """Read new records. If another node leads, a state of at most half a second ago is sufficient unless
        `is_needed`.
        """
        partition = self._partition
        if partition is None:
            if self._topic_id is not None:
                self._forget()
            return
        if self._is_current(partition) and (partition.leads or not is_needed):
            return
        async with self._lock:
            try:
                await self._read(partition)
            except ApiError as refused:
                if is_needed or not self._read_at_s or not refused.code.is_retriable:
                    raise
                # Like Confluent's registry: without a leader, the last known state is served.
                _logger.debug("%s-0: could not be read: %s", TOPIC, refused)

    @property
    def _partition(self) -> Partition | None:
        topic = self._broker.topics.by_name.get(TOPIC)
        if topic is None:
            return None
        if topic.entry.id != self._topic_id:
            self._forget()
            self._topic_id = topic.entry.id
        return topic.partitions[0]

    def _forget(self) -> None:
        """Forget the state: the topic was deleted or re-created."""
        self.state, self._position, self._read_at_s, self._writer, self._topic_id = State(), 0, 0.0, None, None

    def _is_current(self, partition: Partition) -> bool:
        if not self._read_at_s:
            return False
        if not partition.leads:
            return time.monotonic() - self._read_at_s < _FRESH_S
        return self._position >= partition.high_watermark

    def _led(self, partition: Partition) -> int:
        """The leader epoch. The end of the log is unknown without a leader, or before this node knows that it leads."""
        leader, epoch = partition.leader
        if self._broker.replication is not None:
            is_here = leader == self._broker.config.node_id
            if leader not in self._broker.topology.node_ids or (is_here and not partition.leads):
                raise LeaderNotAvailable(f"{TOPIC}-0 has no leader")
        return epoch

    async def _read(self, partition: Partition) -> None:
        """Read to the current end; from the start after a change of leader, which may have truncated the log."""
        epoch = self._led(partition)
        limits = (await bounds(self._broker, [partition]))[partition.at]
        is_new = epoch != self._epoch or limits.end < self._position
        state, position = (State(), 0) if is_new else (self.state, self._position)
        position = max(position, limits.start)
        while position < limits.end:
            [data] = await fetch(self._client, TOPIC, {0: position}, max_bytes=_FETCH_BYTES)
            raise_refusal(data.error_code)
            before = position
            for piece in records_in(data, position, TOPIC):
                for record in piece.records:
                    self._apply(state, record)
                position = piece.next_offset
                if not is_new:
                    self._position = position
                await asyncio.sleep(0)
            if position == before:
                raise OffsetNotAvailable(f"{TOPIC}-0 cannot be read to its end at offset {limits.end} yet")
        self.state, self._position, self._epoch = state, position, epoch
        self._read_at_s = time.monotonic()

    def _apply(self, state: State, record: ReadRecord) -> None:
        try:
            change = records.decoded(record.key, record.value, record.timestamp)
        except InvalidSchema as malformed:
            self.ignored += 1
            _logger.warning("%s-0: ignoring the record at offset %d: %s", TOPIC, record.offset, malformed)
            return
        if change is not None:
            known = state.duplicates
            state.apply(change)
            if state.duplicates > known:
                _logger.error(
                    "%s-0: ignoring the record at offset %d: its id is another schema's", TOPIC, record.offset
                )

    async def compute(self, work: Callable[[State], T]) -> T:
        """Run a long computation in a thread; other changes continue meanwhile."""
        return await asyncio.to_thread(work, self.state.snapshot())

    # Writing

    async def rehearse(self, plan: Callable[[State], Planned[T]]) -> None:
        """Plan a change without writing it or blocking other changes; results of checks are cached for `change`."""
        with contextlib.suppress(Refusal):
            await self.compute(plan)

    async def change(self, plan: Callable[[State], Planned[T]], *, is_repeatable: bool = False) -> T:
        """Plan a change against the latest state, write its records, and return the response once they are
        acknowledged.

        A repeatable plan is executed again if it is unknown whether its records were written.
        """
        give_up_at_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                async with self._lock:
                    return await self._planned(plan)
            except ApiError as refused:
                self._writer = None
                code = refused.code
                if code in _TOO_LARGE:
                    raise Refusal(42209, "the schema is too large to be stored") from None
                may_repeat = code in _NOT_APPENDED or (is_repeatable and code.is_retriable)
                if not may_repeat or time.monotonic() >= give_up_at_s:
                    _logger.warning("%s-0: could not write: %s %s", TOPIC, code.name, refused)
                    late = 50002 if code.is_retriable else 50001
                    raise Refusal(late, f"could not write to {TOPIC}: {code.name} {refused}".strip()) from None
            await asyncio.sleep(_PAUSE_S)

    async def _planned(self, plan: Callable[[State], Planned[T]]) -> T:
        partition = await self._topic()
        await self._read(partition)
        planned = await asyncio.to_thread(plan, self.state)
        if planned.records and self._broker.replication is not None and not self._is_writer:
            await self._become_writer(partition)
            planned = await asyncio.to_thread(plan, self.state)
        if planned.records:
            await self._write(planned.records)
            with contextlib.suppress(ApiError):
                # The records are acknowledged: if they cannot be read back now, the next change reads them first.
                await self._read(partition)
        return planned.answer

    async def _topic(self) -> Partition:
        if self._partition is None:
            try:
                wanted = NewTopic(TOPIC, 1, _CONFIGS)
                await self._broker.administration.create_topic(wanted, _TIMEOUT_MS)
            except ApiError as refused:
                if refused.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
        partition = self._partition
        if partition is None:
            raise Refused(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {TOPIC} is being created")
        if len(self._broker.topics.by_name[TOPIC].partitions) != 1:
            raise Refusal(50001, f"the topic {TOPIC} must have one partition")
        return partition

    @property
    def _is_writer(self) -> bool:
        return self._writer is not None and self._writer.end == self._position

    async def _become_writer(self, partition: Partition) -> None:
        request = InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=_TIMEOUT_MS)
        answer = await self._client.ask(request)
        raise_refusal(answer.error_code)
        self._writer = _Writer(answer.producer_id, answer.producer_epoch, 0, self._position)
        await self._write([records.noop(self.state.largest_ids())])
        await self._read(partition)
        if self._position < self._writer.end:
            raise OffsetNotAvailable(f"{TOPIC}-0 cannot be read to its end at offset {self._writer.end} yet")
        self._writer = self._writer._replace(end=self._position)

    async def _write(self, written: Sequence[Record]) -> None:
        """Write the records in one batch: all of them, or none."""
        builder, now_ms = BatchBuilder(), int(time.time() * 1000)
        writer = self._writer or _Writer(-1, -1, -1, -1)
        for record in written:
            builder.append(now_ms, record.key, record.value)
        batch = builder.build(
            producer_id=writer.producer_id, producer_epoch=writer.epoch, base_sequence=writer.sequence
        )
        data = PartitionProduceData(index=0, records=memoryview(batch))
        topics = (TopicProduceData(name=TOPIC, partition_data=(data,)),)
        request = ProduceRequest(acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=topics)
        answer = await self._client.ask(request, _PRODUCE_BY_NAME)
        result = answer.responses[0].partition_responses[0]
        raise_refusal(result.error_code, result.error_message)
        self.written += len(written)
        if self._writer is not None:
            self._writer = writer._replace(
                sequence=writer.sequence + len(written), end=result.base_offset + len(written)
            )
