"""The transaction coordinator: connects the transaction rules with their log and clock, and writes end markers.

The use of the rules is documented in ottla.transactions.coordinator. In a cluster a broker coordinates the
transactional ids whose partition of `__transaction_state` it leads. Requests are answered and markers written only
after the decision is replicated.
"""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ottla.broker.coordinators.end_markers import MarkerDelivery
from ottla.broker.coordinators.placement import placed
from ottla.broker.coordinators.replaying import Damaged, batches_of
from ottla.broker.topics import TRANSACTION_STATE
from ottla.core.errors import ApiError, ErrorCode, ProtocolError
from ottla.records.control import EndMarker
from ottla.records.encode import BatchBuilder
from ottla.records.reader import RecordReader
from ottla.transactions.coordinator import Coordinator
from ottla.transactions.decisions import Decision, refused
from ottla.transactions.records import encode
from ottla.wire.internal_records import partition_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.peers.transaction_requests import TransactionRequests
    from ottla.core.ids import TopicPartition
    from ottla.transactions.config import TransactionConfig
    from ottla.transactions.decisions import Change
    from ottla.transactions.transaction import Transaction

_logger: Final = logging.getLogger(__name__)

_RETRY_S: Final = 0.5
_ANSWER_AFTER_S: Final = 2.0
"""How long EndTxn waits for markers before it is answered: the outcome is already decided."""


class TransactionCoordinator:
    def __init__(self, broker: Broker, config: TransactionConfig) -> None:
        self.rules = Coordinator(config, broker.producer_ids.next)
        self.config = config
        self._broker = broker
        self._placement = placed(broker, TRANSACTION_STATE, self)
        self._damaged = Damaged()
        self._markers = MarkerDelivery(broker)
        self._timer: asyncio.TimerHandle | None = None
        self._endings: dict[str, asyncio.Task[None]] = {}
        self._unsafe: dict[str, int] = {}
        """The offset of the last record of each id that is not known to be safe yet."""

    @cached_property
    def peer_requests(self) -> TransactionRequests:
        """Connections to the other brokers of a cluster."""
        from ottla.broker.peers.transaction_requests import TransactionRequests  # not needed by a standalone broker

        assert self._broker.replication is not None  # noqa: S101 - for mypy: asked for in a cluster alone
        return TransactionRequests(self._broker.replication)

    def now_ms(self) -> int:
        return self._broker.steady_clock.now_ms()

    # Starting and stopping

    async def start(self) -> None:
        """Load transactions from the log, and complete those that are decided."""
        if self._placement is not None:
            self._placement.start()
            return
        state = self._broker.topics.by_name.get(TRANSACTION_STATE)
        for partition in state.partitions if state else ():
            last: dict[bytes, bytes | None] = {}
            try:
                for _ in _replayed(partition, last):
                    pass
            except ApiError as damaged:
                self._damaged.add(partition, damaged)
            else:
                self._take_over(partition, last)
        unfinished = [self._finishing(each) for each in self.rules.unfinished()]
        if unfinished:
            await asyncio.wait(unfinished, timeout=_ANSWER_AFTER_S)
        self._set_timer()

    async def load(self, partition: Partition) -> None:
        """Load the transactions of one partition, while other requests are served."""
        last: dict[bytes, bytes | None] = {}
        for _ in _replayed(partition, last):
            await asyncio.sleep(0)
        # Records that only this node has may be lost, in which case nothing was decided.
        await partition.until_safe(partition.log.next_offset - 1)
        # Timeouts are set without yielding, so that none fires because of a superseded record.
        self._take_over(partition, last)
        for transactional_id in self.rules.unfinished():
            self._begin_finishing(transactional_id)
        self._set_timer()

    def unload(self, index: int) -> None:
        """Unload the transactions of a partition that another node now leads."""
        state = self._broker.topics.by_name.get(TRANSACTION_STATE)
        count = 0 if state is None else len(state.partitions)
        for transactional_id in self.rules.drop(lambda each: not count or partition_for(each, count) == index):
            self._unsafe.pop(transactional_id, None)
            ending = self._endings.pop(transactional_id, None)
            if ending is not None:
                ending.cancel()

    def _take_over(self, partition: Partition, last: dict[bytes, bytes | None]) -> None:
        for key, value in last.items():
            try:
                self.rules.replay(key, value)
            except ProtocolError as unreadable:
                _logger.warning("%s: skipping an unreadable record: %s", partition.at, unreadable)

    async def stop(self) -> None:
        if self._placement is not None:
            self._placement.stop()
        if self._timer is not None:
            self._timer.cancel()
        endings = tuple(self._endings.values())
        for task in endings:
            task.cancel()
        await asyncio.gather(*endings, return_exceptions=True)
        if "peer_requests" in self.__dict__:
            await self.peer_requests.close()

    def topic_deleted(self, name: str) -> None:
        if name == TRANSACTION_STATE:
            # As with groups: transactions are deleted with their log, now and not at the next start.
            self.rules.clear()
            self._unsafe.clear()
            self._damaged.clear()

    # Applying the rules

    def error_for(self, transactional_id: str) -> ErrorCode:
        """Why this broker cannot coordinate the transactional id; NONE if it can."""
        if self._placement is not None:
            return self._placement.error_for(transactional_id)
        if not self._damaged:
            return ErrorCode.NONE
        return self._damaged.error_for(self.partition_of(transactional_id).at.partition)

    def listing_error(self) -> ErrorCode:
        """Why a list of all transactional ids would be incomplete; NONE if it is complete."""
        if self._damaged:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self.is_loading else ErrorCode.NONE

    @property
    def is_loading(self) -> bool:
        return self._placement is not None and self._placement.is_loading

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: tuple[int, int] | None
    ) -> Decision:
        decided = await self._init_once(transactional_id, timeout_ms, expected)
        if decided.error is ErrorCode.CONCURRENT_TRANSACTIONS:
            # The transaction is about to end, so wait instead of making the client retry.
            await asyncio.wait([self._finishing(transactional_id)], timeout=_ANSWER_AFTER_S)
            decided = await self._init_once(transactional_id, timeout_ms, expected)
        return decided

    async def _init_once(self, transactional_id: str, timeout_ms: int, expected: tuple[int, int] | None) -> Decision:
        if error := self.error_for(transactional_id):
            return refused(error)
        decided = self.rules.init_producer_id(transactional_id, timeout_ms, expected, self.now_ms())
        return await self._carry_out(transactional_id, decided)

    async def add_partitions(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: Collection[TopicPartition],
        client_version: int = 0,
    ) -> ErrorCode:
        if error := self.error_for(transactional_id):
            return error
        now_ms = self.now_ms()
        decided = self.rules.add_partitions(transactional_id, producer, partitions, client_version, now_ms)
        return (await self._carry_out(transactional_id, decided)).error

    async def verify(
        self, transactional_id: str, producer: tuple[int, int], partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether these partitions are part of the producer's open transaction."""
        if error := self.error_for(transactional_id):
            return dict.fromkeys(partitions, error)
        errors = {at: self.rules.verify(transactional_id, *producer, at) for at in partitions}
        if (await self._carry_out(transactional_id, Decision())).error:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return errors

    async def end(
        self, transactional_id: str, producer: tuple[int, int], *, is_commit: bool, client_version: int
    ) -> Decision:
        if error := self.error_for(transactional_id):
            return refused(error)
        decided = self.rules.end(
            transactional_id, producer, self.now_ms(), is_commit=is_commit, client_version=client_version
        )
        return await self._carry_out(transactional_id, decided)

    async def _carry_out(self, transactional_id: str, decision: Decision) -> Decision:
        """Write the decision; returns the response to send then."""
        try:
            if decision.change is not None:
                await self._write(decision.change)
            elif decision.error is ErrorCode.NONE:
                await self._until_safe(transactional_id)
        except ApiError as failed:
            _logger.error("transaction %s: could not write its state: %s", transactional_id, failed)
            return Decision(_error_after_failed_append(failed))
        if decision.change is not None and decision.change.is_ending:
            await asyncio.wait([self._finishing(transactional_id)], timeout=_ANSWER_AFTER_S)
        return decision

    # Writing

    async def _write(self, change: Change) -> None:
        self._append(change)
        await self._until_safe(change.transactional_id)

    def _append(self, change: Change) -> None:
        partition = self.partition_of(change.transactional_id)
        partition.check_can_append()
        builder = BatchBuilder()
        key, value = encode(change.transactional_id, change.transaction)
        builder.append(self._broker.clock.now_ms(), key, value)
        appended = partition.append(builder.build())
        self.rules.apply(change)
        if not partition.is_safe(appended.last_offset):
            self._unsafe[change.transactional_id] = appended.last_offset
        self._set_timer()

    async def _until_safe(self, transactional_id: str) -> None:
        """Wait until all records of this id are safe."""
        offset = self._unsafe.get(transactional_id)
        if offset is None:
            return
        await self.partition_of(transactional_id).until_safe(offset)
        if self._unsafe.get(transactional_id) == offset:
            del self._unsafe[transactional_id]

    def partition_of(self, transactional_id: str) -> Partition:
        """The partition of this id's state. The topic is created with the first transaction."""
        state = self._broker.topics.by_name.get(TRANSACTION_STATE)
        if state is None:
            state = self._broker.create_topic(TRANSACTION_STATE)
        return state.partitions[partition_for(transactional_id, len(state.partitions))]

    # Ending

    def _finishing(self, transactional_id: str) -> asyncio.Task[None]:
        """Write the markers and complete the transaction, even if the client disconnects."""
        self._begin_finishing(transactional_id)
        return self._endings[transactional_id]

    def _begin_finishing(self, transactional_id: str) -> None:
        if transactional_id not in self._endings:
            task = asyncio.get_running_loop().create_task(self._finish(transactional_id))
            self._endings[transactional_id] = task
            task.add_done_callback(lambda done: self._finished(transactional_id, done))

    def _finished(self, transactional_id: str, task: asyncio.Task[None]) -> None:
        if self._endings.get(transactional_id) is task:
            del self._endings[transactional_id]

    async def _finish(self, transactional_id: str) -> None:
        ending = self.rules.get(transactional_id)
        if ending is None or not ending.state.is_ending:
            return
        untold = set(ending.partitions)
        complaint = ""
        while True:
            try:
                await self._until_safe(transactional_id)
                marker = self._marker(transactional_id, ending)
                await self._markers.deliver(untold, (ending.producer_id, ending.epoch), marker)
                if self.rules.get(transactional_id) is ending:
                    await self._write(self.rules.completed(transactional_id, self.now_ms()))
            except ApiError as failed:
                if complaint != str(failed):  # logged once, not with every retry
                    complaint = str(failed)
                    _logger.warning(
                        "transaction %s: writing end markers failed, retrying: %s", transactional_id, failed
                    )
                await asyncio.sleep(_RETRY_S)
            else:
                return

    def _marker(self, transactional_id: str, ending: Transaction) -> EndMarker:
        """Sent with this broker's coordinator epoch, by which partitions fence a deposed coordinator."""
        partition = self.partition_of(transactional_id)
        partition.check_leads()
        return EndMarker(ending.is_commit, partition.leader_epoch, ending.client_version)

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
        """Abort this producer's open transactions, as after a timeout; returns their number."""
        late = self.rules.expire_now(transactional_id, self.now_ms())
        self._abort_late(late)
        return len(late)

    def _abort_late(self, late: Sequence[Change]) -> None:
        for change in late:
            transactional_id = change.transactional_id
            try:
                self._append(change)
            except ApiError as failed:
                _logger.error("transaction %s timed out but could not be aborted: %s", transactional_id, failed)
                self.rules.try_again(transactional_id, self.now_ms() + int(_RETRY_S * 1000))
            else:
                _logger.info("transaction %s timed out and was aborted", transactional_id)
                self._begin_finishing(transactional_id)

    def catch_up(self) -> None:
        """Run what is due after the clock was moved."""
        if self._timer is not None:
            self._timer.cancel()
        self._expire()

    def forget_expired(self) -> None:
        for change in self.rules.forget(self.now_ms()):
            self._append(change)


def _replayed(partition: Partition, last: dict[bytes, bytes | None]) -> Iterator[None]:
    """Read a partition, keeping the last record of each id; other requests may be served between batches."""
    for _, batch in batches_of(partition):
        yield
        for record in RecordReader(batch):
            last[record.key or b""] = record.value


def _error_after_failed_append(failed: ApiError) -> ErrorCode:
    """A retriable error for the producer: find the coordinator, and retry."""
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if ErrorCode(failed.code).is_retriable else ErrorCode(failed.code)
