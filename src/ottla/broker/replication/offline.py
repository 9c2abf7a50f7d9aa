"""Replicas of this broker whose log the disk failed: out of service, handed over, and opened again with backoff.

A log that cannot be opened is tried again. One that went offline while it was open (a failed fsync or write) stays so
until a restart: the kernel may have dropped what it could not write.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ApiError

if TYPE_CHECKING:
    from ottla.broker.replication.replica import Replica
    from ottla.broker.replication.replication import Replication
    from ottla.cluster.state import PartitionKey

_logger: Final = logging.getLogger(__name__)

_MOST_BACKOFF_S: Final = 30.0
_MOST_DOUBLINGS: Final = 16
_AGAIN_S: Final = 0.5


def backoff_s(first_s: float, attempts: int) -> float:
    """How long to wait after so many failed attempts in a row to open a log."""
    return min(first_s * (1 << min(attempts - 1, _MOST_DOUBLINGS)), _MOST_BACKOFF_S)


class _Offline:
    __slots__ = ("attempts", "next_s", "replica", "why")

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.why = ""
        self.attempts = 0
        self.next_s: float | None = None
        """None: it is not opened again."""


class OfflineReplicas:
    def __init__(self, replication: Replication) -> None:
        self._replication = replication
        self._offline: dict[PartitionKey, _Offline] = {}
        self._leaving: dict[PartitionKey, asyncio.Task[None]] = {}
        self._report: asyncio.Task[None] | None = None

    @property
    def replicas(self) -> list[Replica]:
        return [each.replica for each in self._offline.values()]

    def failed(self, replica: Replica, why: str, *, is_final: bool = False) -> None:
        """Take it out of service; with `is_final` until a restart."""
        replica.offline = why
        if not self._replication.is_current(replica):
            return
        known = self._offline.get(replica.key)
        if known is None or known.replica is not replica:
            known = self._offline[replica.key] = _Offline(replica)
        known.attempts += 1
        first_s = self._replication.config.replica_fetch_backoff_ms / 1000
        wait_s = backoff_s(first_s, known.attempts)
        known.next_s = None if is_final else asyncio.get_running_loop().time() + wait_s
        if known.why != why:  # once, and not with every attempt
            known.why = why
            _logger.error("%s: replica on broker %d is offline: %s", replica.partition.at, replica.node_id, why)
        replica.step_down()
        self._replication.unfollow(replica)
        self.leave_isr(replica)
        self._tell()

    def forget(self, replica: Replica) -> None:
        """It is not kept here any more, or its topic is gone."""
        known = self._offline.get(replica.key)
        if known is not None and known.replica is replica:
            del self._offline[replica.key]
            replica.offline = None
            self._tell()

    def open_due(self, now_s: float) -> None:
        """Open those again whose backoff is over."""
        for each in tuple(self._offline.values()):
            if each.next_s is not None and each.next_s <= now_s:
                self._open(each.replica)

    def _open(self, replica: Replica) -> None:
        try:
            replica.open_again()
        except ApiError:
            return  # `failed` has been told
        _logger.warning("%s: replica on broker %d is online again", replica.partition.at, replica.node_id)
        self.forget(replica)
        self._replication.resume(replica)

    # The others

    def leave_isr(self, replica: Replica) -> None:
        """Let another in-sync replica lead, and be waited for no more, if there is another one."""
        if replica.key not in self._leaving and self._can_leave(replica):
            task = asyncio.get_running_loop().create_task(self._leave(replica))
            self._leaving[replica.key] = task
            task.add_done_callback(lambda _: self._leaving.pop(replica.key, None))

    def leave_wherever_possible(self) -> None:
        for replica in self.replicas:
            self.leave_isr(replica)

    def _can_leave(self, replica: Replica) -> bool:
        """The last in-sync replica stays: no other one has all that was acknowledged."""
        view, me = self._replication.cluster.view, self._replication.node_id
        state = view.partitions.get(replica.key)
        return (
            replica.offline is not None
            and state is not None
            and me in state.isr
            and any(node in view.brokers and node != me for node in state.isr)
        )

    async def _leave(self, replica: Replica) -> None:
        while self._can_leave(replica):
            try:
                state = await self._replication.cluster.leave_isr(replica.key)
            except ApiError as refused:
                _logger.warning("%s: could not leave the ISR: %s", replica.partition.at, refused)
                await asyncio.sleep(_AGAIN_S)
            else:
                _logger.warning(
                    "%s: broker %d left the ISR because its replica is offline; leader %d, ISR %s",
                    *(replica.partition.at, replica.node_id, state.leader, list(state.isr)),
                )

    def _tell(self) -> None:
        """Let the other brokers know which replicas are offline here."""
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
        await asyncio.gather(*tasks, return_exceptions=True)
