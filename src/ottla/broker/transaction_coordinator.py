"""The edge of the transaction rules: keeps their log and their clock, and tells partitions how transactions end.

How the rules want to be used is said in ottla.transactions.coordinator.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.end_markers import tell
from ottla.broker.replaying import batches_of
from ottla.broker.topics import TRANSACTION_STATE
from ottla.core.errors import ApiError, ErrorCode, ProtocolError
from ottla.records.control import EndMarker
from ottla.records.encode import BatchBuilder
from ottla.records.reader import RecordReader
from ottla.transactions.coordinator import Coordinator
from ottla.transactions.decisions import Decision
from ottla.transactions.records import encode
from ottla.wire.internal_records import partition_for

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.core.ids import TopicPartition
    from ottla.transactions.config import TransactionConfig
    from ottla.transactions.decisions import Change

_logger: Final = logging.getLogger(__name__)

_RETRY_S: Final = 0.5
_ANSWER_AFTER_S: Final = 2.0
"""How long the end of a transaction may take before its producer is answered all the same: it is decided anyway."""


class TransactionCoordinator:
    def __init__(self, broker: Broker, config: TransactionConfig) -> None:
        self.rules = Coordinator(config, broker.producer_ids.next)
        self.config = config
        self._broker = broker
        self._timer: asyncio.TimerHandle | None = None
        self._endings: dict[str, asyncio.Task[None]] = {}

    def now_ms(self) -> int:
        return self._broker.steady_clock.now_ms()

    # Starting and stopping

    async def start(self) -> None:
        """Take over what the log says of transactions, and end those of which it says how they end."""
        if self._broker.cluster is not None:
            return
        state = self._broker.topics.by_name.get(TRANSACTION_STATE)
        for partition in state.partitions if state else ():
            self._load(partition)
        unfinished = [self._finishing(each) for each in self.rules.unfinished()]
        if unfinished:
            await asyncio.wait(unfinished, timeout=_ANSWER_AFTER_S)
        self._set_timer()

    def _load(self, partition: Partition) -> None:
        for _, batch in batches_of(partition):
            for record in RecordReader(batch):
                try:
                    self.rules.replay(record.key or b"", record.value)
                except ProtocolError as unreadable:
                    _logger.warning("%s: record %d is left out: %s", partition.at, record.offset, unreadable)

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for task in self._endings.values():
            task.cancel()
        await asyncio.gather(*self._endings.values(), return_exceptions=True)

    def topic_deleted(self, name: str) -> None:
        if name == TRANSACTION_STATE:
            # As with groups: transactions go with their log, now and not with the next start.
            self.rules.clear()

    # Asking the rules

    async def carry_out(self, decision: Decision) -> Decision:
        """Write down what was decided; returns what may be answered then."""
        if decision.change is None:
            return decision
        try:
            await self._write(decision.change)
        except ApiError as refused:
            _logger.error("transaction %s could not be written: %s", decision.change.transactional_id, refused)
            return Decision(_error_after_failed_append(refused))
        if decision.change.is_ending:
            await asyncio.wait([self._finishing(decision.change.transactional_id)], timeout=_ANSWER_AFTER_S)
        return decision

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: tuple[int, int] | None
    ) -> Decision:
        decided = self.rules.init_producer_id(transactional_id, timeout_ms, expected, self.now_ms())
        decided = await self.carry_out(decided)
        if decided.error is ErrorCode.CONCURRENT_TRANSACTIONS:
            # What was under way is about to have ended, so the client need not come back for its answer.
            await asyncio.wait([self._finishing(transactional_id)], timeout=_ANSWER_AFTER_S)
            decided = self.rules.init_producer_id(transactional_id, timeout_ms, expected, self.now_ms())
            decided = await self.carry_out(decided)
        return decided

    async def add_partitions(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: Collection[TopicPartition],
        client_version: int = 0,
    ) -> ErrorCode:
        now_ms = self.now_ms()
        decided = self.rules.add_partitions(transactional_id, producer, partitions, client_version, now_ms)
        return (await self.carry_out(decided)).error

    # Writing

    async def _write(self, change: Change) -> None:
        partition, offset = self._append(change)
        if partition.log.config.flush == "ack":
            await self._broker.flusher.durable(partition, offset)

    def _append(self, change: Change) -> tuple[Partition, int]:
        partition = self.partition_of(change.transactional_id)
        builder = BatchBuilder()
        key, value = encode(change.transactional_id, change.transaction)
        builder.append(self._broker.clock.now_ms(), key, value)
        batch = builder.build()
        appended = partition.log.append(batch, partition.leader_epoch)
        self.rules.apply(change)
        partition.appended(len(batch))
        self._set_timer()
        return partition, appended.last_offset

    def partition_of(self, transactional_id: str) -> Partition:
        """Where the transactions of this id are written down. The topic is created when the first one is."""
        state = self._broker.topics.by_name.get(TRANSACTION_STATE)
        if state is None:
            state = self._broker.create_topic(TRANSACTION_STATE)
        return state.partitions[partition_for(transactional_id, len(state.partitions))]

    # Ending

    def _finishing(self, transactional_id: str) -> asyncio.Task[None]:
        """Runs to its end, whatever becomes of whoever asked for it."""
        self._begin_finishing(transactional_id)
        return self._endings[transactional_id]

    def _begin_finishing(self, transactional_id: str) -> None:
        if transactional_id not in self._endings:
            task = asyncio.get_running_loop().create_task(self._finish(transactional_id))
            self._endings[transactional_id] = task
            task.add_done_callback(lambda _: self._endings.pop(transactional_id, None))

    async def _finish(self, transactional_id: str) -> None:
        ending = self.rules.get(transactional_id)
        if ending is None or not ending.state.is_ending:
            return
        untold = set(ending.partitions)
        while True:
            try:
                marker = EndMarker(ending.is_commit, self.partition_of(transactional_id).leader_epoch)
                await self._tell(untold, (ending.producer_id, ending.epoch), marker)
                if self.rules.get(transactional_id) is ending:
                    await self._write(self.rules.completed(transactional_id, self.now_ms()))
            except ApiError as refused:
                _logger.error("the end of transaction %s will be tried again: %s", transactional_id, refused)
                await asyncio.sleep(_RETRY_S)
            else:
                return

    async def _tell(self, untold: set[TopicPartition], producer: tuple[int, int], marker: EndMarker) -> None:
        unsafe = []
        failed: ApiError | None = None
        for at in sorted(untold):
            try:
                told = tell(self._broker, at, producer, marker)
            except ApiError as refused:
                # The others need not wait for a partition that cannot be written.
                failed = refused
                continue
            if told is not None and told[0].log.config.flush == "ack":
                unsafe.append(told)
            untold.discard(at)
        for partition, offset in unsafe:
            await self._broker.flusher.durable(partition, offset)
        if failed is not None:
            raise failed

    # Time

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = self.rules.next_deadline_ms()
        if deadline_ms is not None:
            delay_s = max(deadline_ms - self.now_ms(), 0) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._abort_late(self.rules.expire(self.now_ms()))
        self._set_timer()

    def expire(self, transactional_id: str) -> int:
        """Abort what this producer has under way, as if its time were up; how many transactions that is."""
        late = self.rules.expire_now(transactional_id, self.now_ms())
        self._abort_late(late)
        return len(late)

    def _abort_late(self, late: Sequence[Change]) -> None:
        for change in late:
            transactional_id = change.transactional_id
            try:
                self._append(change)
            except ApiError as refused:
                _logger.error("transaction %s is late and could not be aborted: %s", transactional_id, refused)
                self.rules.try_again(transactional_id, self.now_ms() + int(_RETRY_S * 1000))
            else:
                _logger.info("transaction %s is aborted: it has taken too long", transactional_id)
                self._begin_finishing(transactional_id)

    def catch_up(self) -> None:
        """The clock was moved: what is due by it is done now."""
        if self._timer is not None:
            self._timer.cancel()
        self._expire()

    def forget_expired(self) -> None:
        for change in self.rules.forget(self.now_ms()):
            self._append(change)


def _error_after_failed_append(refused: ApiError) -> ErrorCode:
    """What a producer is told: to look for its coordinator, and to try again."""
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if ErrorCode(refused.code).is_retriable else ErrorCode(refused.code)
