"""Offline replicas of this broker: taken out of service, handed over, and reopened with backoff.

A log that cannot be opened is assumed to be intact. One that failed while it was open (a write or an fsync) may have
lost unsynced records: the kernel may have dropped dirty pages. It is recovered, as at a start, once
another replica leads or none does, so that it leads only in a later epoch.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.cluster.election import given_up, without
from ottla.core.errors import ApiError, StorageError

if TYPE_CHECKING:
    from ottla.broker.replication.replica import Replica
    from ottla.broker.replication.replication import Replication
    from ottla.cluster.state import PartitionKey, PartitionState

_logger: Final = logging.getLogger(__name__)

_MOST_BACKOFF_S: Final = 30.0
_MOST_DOUBLINGS: Final = 16
_AGAIN_S: Final = 0.5
_CALM_S: Final = 60.0
"""A replica that fails again sooner than this after it was reopened gets a longer backoff."""
_MOST_OPENINGS: Final = 2
"""The maximum number of logs recovered at the same time: threads must be left for other work."""


def backoff_s(first_s: float, attempts: int) -> float:
    """The backoff after this number of consecutive failures."""
    return min(first_s * (1 << min(attempts - 1, _MOST_DOUBLINGS)), _MOST_BACKOFF_S)


class _Offline:
    __slots__ = ("attempts", "may_lack_records", "next_s", "replica", "was_open", "why")

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.why = ""
        self.attempts = 0
        self.next_s: float | None = None
        """When it is reopened; None for never, and while it is being reopened."""
        self.was_open = False
        """Whether its log failed while it was open."""
        self.may_lack_records = False


class OfflineReplicas:
    def __init__(self, replication: Replication) -> None:
        self._replication = replication
        self._offline: dict[PartitionKey, _Offline] = {}
        self._opened: dict[PartitionKey, tuple[float, int]] = {}
        """When each replica was reopened, and after how many attempts."""
        self._leaving: dict[PartitionKey, asyncio.Task[None]] = {}
        self._report: asyncio.Task[None] | None = None
        self._openings: set[asyncio.Task[None]] = set()

    @property
    def replicas(self) -> list[Replica]:
        return [each.replica for each in self._offline.values()]

    def failed(self, replica: Replica, why: str) -> None:
        """Take the replica out of service: its log could not be opened."""
        replica.go_offline(why)
        if self._replication.is_current(replica):
            self._fail(self._known(replica), why)

    def log_failed(self, replica: Replica, why: str, *, may_lack_records: bool, is_final: bool) -> None:
        """Take the replica out of service, with `is_final` until a restart: its log failed while open."""
        replica.go_offline(why)
        if self._replication.is_current(replica):
            known = self._known(replica)
            known.was_open = True
            known.may_lack_records |= may_lack_records
            self._fail(known, why)
            if is_final:
                known.next_s = None

    def _known(self, replica: Replica) -> _Offline:
        known = self._offline.get(replica.key)
        if known is None or known.replica is not replica:
            known = self._offline[replica.key] = _Offline(replica)
            opened_s, attempts = self._opened.pop(replica.key, (0.0, 0))
            if asyncio.get_running_loop().time() - opened_s < _CALM_S:
                known.attempts = attempts
        return known

    def _fail(self, known: _Offline, why: str) -> None:
        replica = known.replica
        known.attempts += 1
        wait_s = backoff_s(self._replication.config.replica_fetch_backoff_ms / 1000, known.attempts)
        known.next_s = asyncio.get_running_loop().time() + wait_s
        if known.why != why:  # once, not with every attempt
            known.why = why
            _logger.error("%s: replica on broker %d is offline: %s", replica.partition.at, replica.node_id, why)
        self._replication.unfollow(replica)
        self._tell()
        self.leave_isr(replica)

    def forget(self, replica: Replica) -> None:
        """The replica was moved away, or its topic was deleted."""
        self._opened.pop(replica.key, None)
        self._remove(replica)

    def _remove(self, replica: Replica) -> None:
        known = self._offline.get(replica.key)
        if known is not None and known.replica is replica:
            del self._offline[replica.key]
            replica.go_online()
            self._tell()

    # Reopening

    def open_due(self, now_s: float) -> None:
        """Reopen replicas whose backoff has passed."""
        for each in tuple(self._offline.values()):
            if len(self._openings) == _MOST_OPENINGS:
                return
            if each.next_s is not None and each.next_s <= now_s and self._is_wanted(each) and self._may_open(each):
                each.next_s = None
                task = asyncio.get_running_loop().create_task(self._open(each))
                self._openings.add(task)
                task.add_done_callback(self._opened_or_not)

    def _opened_or_not(self, task: asyncio.Task[None]) -> None:
        self._openings.discard(task)
        self.open_due(asyncio.get_running_loop().time())

    def _is_wanted(self, each: _Offline) -> bool:
        """Whether the replica is still there, and offline."""
        return self._offline.get(each.replica.key) is each and self._replication.is_current(each.replica)

    def _may_open(self, each: _Offline) -> bool:
        """Whether to reopen it. A log that may have lost records is not reopened while this broker is leader or in the
        ISR.
        """
        state = self._state_of(each.replica)
        if not each.was_open or state is None:
            return True
        return state.leader != self._replication.node_id and self._after(each, state) == state

    async def _open(self, each: _Offline) -> None:
        replica = each.replica
        try:
            await self._recover(each)
            if not self._is_wanted(each):
                return
            replica.open_again()
        except Exception as failed:  # noqa: BLE001 - other partitions must not be affected
            if self._is_wanted(each):
                self.failed(replica, str(failed) or repr(failed))
            return
        if self._lacks_needed_records(each):
            self.log_failed(replica, "records of its log are missing", may_lack_records=True, is_final=False)
            return
        self._opened[replica.key] = asyncio.get_running_loop().time(), each.attempts
        _logger.warning("%s: replica on broker %d is online again", replica.partition.at, replica.node_id)
        self._remove(replica)
        self._replication.resume(replica)

    async def _recover(self, each: _Offline) -> None:
        """Recover the log in another thread. The replica is offline meanwhile, and may be removed or deleted."""
        if not self._is_wanted(each):
            return
        replica, broker = each.replica, self._replication.broker
        if each.was_open:
            broker.flusher.forget(replica.partition)
            broker.data_dir.let_go(replica.partition.at)
            replica.partition.close()
        topic = broker.topics.by_id[replica.key.topic_id.raw]
        opening = broker.data_dir.begin_opening(replica.partition.at, topic.config.log, topic.entry.id)
        await asyncio.get_running_loop().run_in_executor(None, opening.run)
        if self._is_wanted(each) and self._may_open(each):
            broker.data_dir.finish_opening(opening).use_config(topic.config.log)
        else:
            broker.maintenance.remove(broker.data_dir.cancel_opening(opening))
            if self._is_wanted(each):
                raise StorageError(each.why)

    def _lacks_needed_records(self, each: _Offline) -> bool:
        """Whether recovery truncated records that the ISR or an election may still rely on."""
        log, state = each.replica.partition.log, self._state_of(each.replica)
        if not log.lacks_records:
            return False
        node, brokers = self._replication.node_id, self._replication.cluster.view.brokers
        if state is not None and len(state.replicas) > 1 and given_up(state, node, brokers) != state:
            return True
        with suppress(OSError):
            log.forget_lack()
        return False

    # Other brokers

    def leave_isr(self, replica: Replica) -> None:
        """Leave the ISR and leadership, if another in-sync replica exists."""
        if replica.key not in self._leaving and self._can_leave(replica):
            task = asyncio.get_running_loop().create_task(self._leave(replica))
            self._leaving[replica.key] = task
            task.add_done_callback(lambda _: self._leaving.pop(replica.key, None))

    def leave_all_isrs(self) -> None:
        for replica in self.replicas:
            self.leave_isr(replica)

    def _state_of(self, replica: Replica) -> PartitionState | None:
        return self._replication.cluster.view.partitions.get(replica.key)

    def _after(self, each: _Offline, state: PartitionState) -> PartitionState:
        """The partition state without this replica, unless it is the last ISR member: no other has all acknowledged
        records.
        """
        rule = given_up if each.may_lack_records else without
        return rule(state, self._replication.node_id, self._replication.cluster.view.brokers)

    def _can_leave(self, replica: Replica) -> bool:
        known, state = self._offline.get(replica.key), self._state_of(replica)
        return (
            known is not None and known.replica is replica and state is not None and self._after(known, state) != state
        )

    async def _leave(self, replica: Replica) -> None:
        while self._can_leave(replica):
            if self._report is not None:
                # Otherwise the controller could elect this replica again.
                await asyncio.wait([self._report])
            known = self._offline.get(replica.key)
            if known is None:
                return
            try:
                state = await self._replication.cluster.leave_isr(replica.key, may_lack_records=known.may_lack_records)
            except ApiError as refused:
                _logger.warning("%s: could not leave the ISR: %s", replica.partition.at, refused)
                await asyncio.sleep(_AGAIN_S)
            else:
                _logger.warning(
                    "%s: replica on broker %d is offline: the partition now has leader %d, ISR %s",
                    *(replica.partition.at, replica.node_id, state.leader, list(state.isr)),
                )

    def _tell(self) -> None:
        """Report the offline replicas to the other brokers."""
        if self._report is None:
            self._report = asyncio.get_running_loop().create_task(self._tell_until_known())

    async def _tell_until_known(self) -> None:
        told: frozenset[PartitionKey] | None = None
        while (wanted := frozenset(self._offline)) != told:
            try:
                await self._replication.cluster.report_offline(wanted)
            except ApiError as refused:
                _logger.warning("could not report offline replicas: %s", refused)
                await asyncio.sleep(_AGAIN_S)
            else:
                told = wanted
        self._report = None

    async def stop(self) -> None:
        tasks = [*self._leaving.values(), *([] if self._report is None else [self._report])]
        for task in tasks:
            task.cancel()
        # A recovery cannot be cancelled, and must not go on in a folder that was closed.
        await asyncio.gather(*tasks, *self._openings, return_exceptions=True)
