"""The group coordinator: connects the group rules with their log, their clock and pending requests.

The use of the rules is documented in ottla.groups.coordinator.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import TYPE_CHECKING, Final

from ottla.broker.coordinators.group_configs import timing_of
from ottla.broker.coordinators.group_topics import GroupTopics
from ottla.broker.coordinators.placement import placed
from ottla.broker.coordinators.replaying import Damaged, batches_of
from ottla.broker.partition_racks import PartitionRacks
from ottla.broker.topics import CONSUMER_OFFSETS
from ottla.core.errors import ApiError, ErrorCode, ProtocolError
from ottla.groups.actions import (
    Answer,
    AnswerHeartbeat,
    AnswerJoin,
    AnswerLeave,
    AnswerSync,
    LimitReached,
    MemberExpired,
    PersistOffsets,
    Written,
    error_after_failed_append,
    records_of,
    refuse_join,
    refuse_sync,
)
from ottla.groups.consumer.environment import Environment
from ottla.groups.consumer.matching import Matching
from ottla.groups.coordinator import Coordinator
from ottla.groups.records import is_of_share_group, partition_for
from ottla.records.control import read_end_marker
from ottla.records.encode import BatchBuilder
from ottla.records.reader import RecordReader
from ottla.wire.messages.leave_group import LeaveGroupResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Iterator, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.groups.actions import Action
    from ottla.groups.config import GroupConfig
    from ottla.groups.group import Group
    from ottla.wire.declare import Response

_logger: Final = logging.getLogger(__name__)


class GroupCoordinator:
    def __init__(self, broker: Broker, config: GroupConfig) -> None:
        topics = GroupTopics(broker.topics, None if broker.cluster is None else PartitionRacks(broker.cluster))
        environment = Environment(
            config,
            topics,
            lambda: str(uuid.uuid4()),
            lambda group_id: timing_of(broker.catalog.view, config, group_id),
            Matching(topics),
        )
        self.rules = Coordinator(environment)
        self.config = config
        self._broker = broker
        self._placement = placed(broker, CONSUMER_OFFSETS, self)
        self._damaged = Damaged()
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_at_ms: int | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def now_ms(self) -> int:
        return self._broker.steady_clock.now_ms()

    # Starting and stopping

    def start(self) -> None:
        """Load groups and offsets from the log."""
        if self._placement is not None:
            self._placement.start()
            return
        state = self._broker.topics.by_name.get(CONSUMER_OFFSETS)
        for partition in state.partitions if state else ():
            try:
                for _ in self._replayed(partition):
                    pass
            except ApiError as damaged:
                self._damaged.add(partition, damaged)
                self.unload(partition.at.partition)
        self.run(self.rules.table.start(self.now_ms()))

    async def load(self, partition: Partition) -> None:
        """Load groups and offsets from one partition, while other requests are served."""
        for _ in self._replayed(partition):
            await asyncio.sleep(0)
        for group in self._groups_in(partition.at.partition):
            self.run(group.start(self.now_ms()))
            self.rules.table.settle(group)
        if self._broker.has_shared:
            self._broker.share.loaded(partition)
        self._set_timer()

    def unload(self, index: int) -> None:
        """Unload the groups of a partition that another node now leads."""
        groups = [group.group_id for group in self._groups_in(index)]
        # A group that has only the offsets of an open transaction is not in the table yet.
        pending = [group_id for group_id in self.rules.table.pending.groups if self._is_in(index, group_id)]
        for group_id in dict.fromkeys([*groups, *pending]):
            self.run(self.rules.table.unload(group_id, ErrorCode.NOT_COORDINATOR))
        if self._broker.has_shared:
            self._broker.share.unloaded(lambda group_id: self._is_in(index, group_id))

    def _groups_in(self, index: int) -> list[Group]:
        return [group for group in self.rules.table if self._is_in(index, group.group_id)]

    def _is_in(self, index: int, group_id: str) -> bool:
        state = self._broker.topics.by_name.get(CONSUMER_OFFSETS)
        return state is None or partition_for(group_id, len(state.partitions)) == index

    def error_for(self, group_id: str) -> ErrorCode:
        """Why this broker cannot coordinate the group; NONE if it can."""
        if self._placement is not None:
            return self._placement.error_for(group_id)
        return self._damaged.error_for(self.partition_of(group_id).at.partition) if self._damaged else ErrorCode.NONE

    @property
    def are_some_unknown(self) -> bool:
        """Whether groups may be missing because their partition is damaged."""
        return bool(self._damaged)

    def _replayed(self, partition: Partition) -> Iterator[None]:
        """Read a partition; other requests may be served between batches."""
        for header, batch in batches_of(partition):
            yield
            if header.is_control:
                marker = read_end_marker(batch)
                if marker is not None:
                    self.transaction_ended(partition, header.producer_id, is_commit=marker.is_commit)
                continue
            producer_id = header.producer_id if header.is_transactional else None
            for record in RecordReader(batch):
                try:
                    if is_of_share_group(record.key or b""):
                        self._broker.share.groups.replay(record.key or b"", record.value)
                    else:
                        self.rules.table.replay(record.key or b"", record.value, producer_id)
                except ProtocolError as unreadable:
                    _logger.warning(
                        "%s: skipping unreadable record at offset %d: %s", partition.at, record.offset, unreadable
                    )

    def transaction_ended(self, partition: Partition, producer_id: int, *, is_commit: bool) -> None:
        """The end marker of a producer's transaction in this partition of the log."""
        self.rules.table.transaction_ended(
            producer_id, lambda group_id: self.partition_of(group_id) is partition, is_commit=is_commit
        )

    def stop(self) -> None:
        """Answer pending requests with NOT_COORDINATOR; written records stay."""
        if self._placement is not None:
            self._placement.stop()
        self._unload_all(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if self._timer is not None:
            self._timer.cancel()

    def _unload_all(self, error: ErrorCode) -> None:
        for group in self.rules.table:
            self.run(self.rules.table.unload(group.group_id, error))

    # Applying the rules

    def answered(
        self, group_id: str, token: asyncio.Future[Response], actions: Sequence[Action]
    ) -> Coroutine[object, object, Response]:
        """Carry out the actions now, and return an awaitable of the response for `token`.

        Not a coroutine function: its body would run in a later iteration of the loop, and another request in between
        would not see the changes of this one.
        """
        self.run(actions)
        return self._wait_for(group_id, token)

    async def _wait_for(self, group_id: str, token: asyncio.Future[Response]) -> Response:
        try:
            return await token
        except asyncio.CancelledError:
            self.run(self.rules.forget(group_id, token, self.now_ms()))
            raise

    async def persist(self, actions: Sequence[Action]) -> ErrorCode:
        """Carry out actions that only write; returns the error, if any."""
        error, unsafe = self._write(actions)
        if unsafe is not None:
            try:
                await unsafe
            except ApiError as refused:
                return error_after_failed_append(refused.code)
        return error

    def run(self, actions: Sequence[Action]) -> None:
        """Carry out actions. Responses wait until the records written before them are safe."""
        error, unsafe = self._write(actions)
        answers = [action for action in actions if isinstance(action, Answer)]
        if unsafe is None:
            _deliver(answers, error)
        else:
            task = asyncio.get_running_loop().create_task(self._deliver_when_safe(actions, answers, unsafe))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._set_timer()

    async def _deliver_when_safe(
        self, actions: Sequence[Action], answers: Sequence[Answer], unsafe: Awaitable[None]
    ) -> None:
        try:
            await unsafe
        except ApiError as refused:
            _deliver(answers, error_after_failed_append(refused.code))
            for action in actions:
                if isinstance(action, Written):
                    self.run(self.rules.persist_failed(action, self.now_ms()))
        else:
            _deliver(answers)

    def _write(self, actions: Sequence[Action]) -> tuple[ErrorCode, Awaitable[None] | None]:
        error = ErrorCode.NONE
        written: dict[Partition, int] = {}
        for action in actions:
            if isinstance(action, MemberExpired):
                _logger.info("member %s of group %s missed its %s", action.member_id, action.group_id, action.missed)
            elif isinstance(action, LimitReached):
                _logger.warning("group %s: rejected a request: %s", action.group_id, action.message)
            elif isinstance(action, Written):
                try:
                    partition, last_offset = self._append(action)
                    written[partition] = last_offset
                except ApiError as refused:
                    _logger.error("group %s: could not write its state: %s", action.group_id, refused)
                    error = error_after_failed_append(refused.code)
                    self.run(self.rules.append_failed(action, self.now_ms()))
        unsafe = {partition: offset for partition, offset in written.items() if not partition.is_safe(offset)}
        return error, self._safe(unsafe) if unsafe else None

    def _append(self, action: Written) -> tuple[Partition, int]:
        partition = self.partition_of(action.group_id)
        partition.check_can_append()
        builder = BatchBuilder()
        now_ms = self._broker.clock.now_ms()
        for key, value in records_of(action):
            builder.append(now_ms, key, value)
        if isinstance(action, PersistOffsets) and action.producer is not None:
            producer_id, epoch = action.producer
            batch = builder.build(producer_id=producer_id, producer_epoch=epoch, is_transactional=True)
            appended = partition.append_of_coordinator(batch)
        else:
            appended = partition.append(builder.build())
        self.rules.table.apply(action)
        return partition, appended.last_offset

    async def _safe(self, written: dict[Partition, int]) -> None:
        for partition, offset in written.items():
            await partition.until_safe(offset)

    def partition_of(self, group_id: str) -> Partition:
        """The partition of the group's state. The topic is created with the first group."""
        state = self._broker.topics.by_name.get(CONSUMER_OFFSETS)
        if state is None:
            state = self._broker.create_topic(CONSUMER_OFFSETS)
        return state.partitions[partition_for(group_id, len(state.partitions))]

    # Time

    def _set_timer(self) -> None:
        deadline_ms = self.rules.table.next_deadline_ms()
        if deadline_ms is None or (self._wakes_at_ms is not None and self._wakes_at_ms <= deadline_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_at_ms = deadline_ms
        delay_s = max(deadline_ms - self.now_ms(), 0) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._wakes_at_ms = None
        self.run(self.rules.table.expire(self.now_ms()))

    def catch_up(self) -> None:
        """Run what is due after the clock was moved."""
        if self._timer is not None:
            self._timer.cancel()
        self._expire()

    def rebalance(self, group_id: str) -> int:
        """Trigger a rebalance of the group; returns the number of groups."""
        actions = self.rules.table.rebalance(group_id, self.now_ms())
        self.run(actions or ())
        return 0 if actions is None else 1

    def expire_sessions(self, group_id: str, client_id: str | None) -> int:
        """Expire members of the group, those of this client or all; returns their number."""
        actions = self.rules.table.expire_sessions(group_id, client_id, self.now_ms())
        self.run(actions)
        return sum(isinstance(action, MemberExpired) for action in actions)

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        if name == CONSUMER_OFFSETS:
            # As in Kafka, groups are deleted with their log: now, and not at the next start.
            self._unload_all(ErrorCode.NOT_COORDINATOR)
            self._damaged.clear()
        else:
            self.run(self.rules.offsets.forget_topics({name: topic_id}))

    def expire_offsets(self) -> None:
        self.run(self.rules.offsets.expire(self.now_ms()))


def _deliver(answers: Sequence[Answer], error: ErrorCode = ErrorCode.NONE) -> None:
    for answer in answers:
        if error is not ErrorCode.NONE:
            answer = _refused(answer, error)  # noqa: PLW2901
        token = answer.token
        if isinstance(token, asyncio.Future) and not token.done():
            token.set_result(answer.response)


def _refused(answer: Answer, error: ErrorCode) -> Answer:
    match answer:
        case AnswerJoin():
            return refuse_join(answer.token, error)
        case AnswerSync():
            return refuse_sync(answer.token, error)
        case AnswerHeartbeat():
            from ottla.groups.consumer.refusing import refuse_heartbeat  # not needed at the start

            return refuse_heartbeat(answer.token, error)
        case AnswerLeave():
            return AnswerLeave(answer.token, LeaveGroupResponse(error_code=error))
