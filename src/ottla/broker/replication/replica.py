"""This broker's replica of one partition: whether it leads, follows, or is not here at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.replication.parking import ParkedAppends
from ottla.cluster.replication.following import followed_high_watermark
from ottla.cluster.replication.leading import Leading
from ottla.cluster.state import NO_NODE
from ottla.core.errors import (
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    RequestTimedOut,
    StorageError,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from ottla.broker.partition import Partition
    from ottla.broker.replication.replication import Replication
    from ottla.broker.replication.throttling import Throttling
    from ottla.broker.requests.waiting import ByteWait
    from ottla.cluster.state import BrokerInfo, PartitionKey, PartitionState
    from ottla.core.errors import ApiError
    from ottla.storage.partition_log import PartitionLog

_NO_EPOCH: Final = -1


class Replica:
    __slots__ = (
        "_checkpointed",
        "_followed_high_watermark",
        "_replication",
        "deletions",
        "key",
        "leading",
        "offline",
        "parked",
        "partition",
        "refused_epoch",
        "state",
        "waits",
    )

    def __init__(self, partition: Partition, key: PartitionKey, replication: Replication, checkpointed: int) -> None:
        self.partition = partition
        self.key = key
        self.state: PartitionState | None = None
        self.leading: Leading | None = None
        self.parked = ParkedAppends()
        self.deletions: ParkedAppends | None = None
        """DeleteRecords requests that wait for in-sync replicas; most partitions never have any."""
        self.waits: set[ByteWait] = set()
        """Fetches of followers, which see what is not committed yet."""
        self.refused_epoch = _NO_EPOCH
        """What a former process, or a log that failed, led in: lost records could be told from new ones by nothing."""
        self.offline: str | None = None
        """Why its log cannot be used; None if it can."""
        self._replication = replication
        self._checkpointed = checkpointed
        self._followed_high_watermark: int | None = None

    # What it is

    @property
    def log(self) -> PartitionLog:
        return self.partition.log

    @property
    def node_id(self) -> int:
        return self._replication.node_id

    @property
    def is_here(self) -> bool:
        return self.state is not None and self.node_id in self.state.replicas

    @property
    def leader(self) -> int:
        return NO_NODE if self.state is None else self.state.leader

    @property
    def leader_epoch(self) -> int:
        return _NO_EPOCH if self.state is None else self.state.leader_epoch

    @property
    def brokers(self) -> Mapping[int, BrokerInfo]:
        return self._replication.cluster.view.brokers

    @property
    def leads(self) -> bool:
        """Asked before every act as a leader: a process that was stopped for long learns here that it does not."""
        return self.leading is not None and not self._replication.is_fenced

    @property
    def high_watermark(self) -> int:
        if self.leading is not None:
            return self.leading.high_watermark
        if self._followed_high_watermark is None:
            log = self.log
            self._followed_high_watermark = min(max(self._checkpointed, log.start_offset), log.next_offset)
        return self._followed_high_watermark

    def check_leads(self) -> Leading:
        if not self.leads or self.leading is None:
            raise self._not_leader()
        return self.leading

    def check_can_append(self, acks: int) -> None:
        leading = self.check_leads()
        if acks == -1 and not leading.has_enough(self.partition.min_insync_replicas):
            raise NotEnoughReplicas(f"{self.partition.at} has {len(leading.isr)} replicas in sync")

    def check_settled(self) -> None:
        """Right after an election the end that consumers may read is not known (KIP-207)."""
        if not self.check_leads().is_settled:
            raise OffsetNotAvailable(f"{self.partition.at} has a new leader, which is not yet sure of its end")

    def _not_leader(self) -> ApiError:
        if self.offline is not None and self.leader in (self.node_id, NO_NODE):
            return self._offline_error()  # there is no other leader to go to
        return NotLeaderOrFollower(f"{self.partition.at} is not led by this broker")

    # The log

    def open_log(self, open_: Callable[[], PartitionLog]) -> PartitionLog:
        """StorageError: it cannot be opened now. It is tried again after a backoff, and not with every request."""
        if self.offline is not None:
            raise self._offline_error()
        try:
            return open_()
        except Exception as failed:  # whatever it is, neighbours are replicated
            self.offline = str(failed) or repr(failed)
            self._replication.offline.failed(self, self.offline)
            raise self._offline_error() from failed

    def open_again(self) -> None:
        """From its files, as at a start: after a failure the log in memory is not believed."""
        high_watermark = self._followed_high_watermark
        if high_watermark is not None:  # it may be beyond what is left
            self._checkpointed, self._followed_high_watermark = high_watermark, None
        self.offline = None
        self.partition.open()

    def log_failed(self, log: PartitionLog, why: str) -> None:
        """The disk failed the open log, or it is damaged."""
        if self.leader == self.node_id:
            self.refused_epoch = self.leader_epoch
        may_lack_records = log.is_damaged or log.config.flush != "ack"
        self._replication.offline.log_failed(self, why, may_lack_records=may_lack_records, is_final=log.is_damaged)

    def _offline_error(self) -> StorageError:
        return StorageError(f"{self.partition.at} is offline: {self.offline}")

    # Changing roles

    def become_leader(self, state: PartitionState, now_ms: int) -> None:
        self.state = state
        self.partition.leader_epoch = state.leader_epoch
        log, high_watermark = self.log, self.high_watermark
        lag_ms = self._replication.config.replica_lag_time_max_ms
        self.leading = Leading(state, log.next_offset, high_watermark, lag_ms=lag_ms, now_ms=now_ms)
        self.leading.present = self._replication.present
        self.advance()

    def become_follower(self, state: PartitionState) -> None:
        """Or nothing at all, if the partition is not kept here."""
        self.step_down()
        self.state = state
        self.partition.leader_epoch = state.leader_epoch

    def step_down(self) -> None:
        if self.leading is not None:
            self._followed_high_watermark = self.leading.high_watermark
            self.leading = None
        self.fail_parked()

    def fail_parked(self) -> None:
        self.parked.fail_all(self._not_leader())
        if self.deletions is not None:
            self.deletions.fail_all(self._not_leader())
        for waits in (self.waits, self.partition.waits):
            for wait in tuple(waits):
                wait.end()

    # Leading

    def appended(self, size: int) -> None:
        """So many bytes more are in the log: followers can have them now, consumers once they are committed."""
        for wait in tuple(self.waits):
            wait.got(size)
        self.advance()

    def advance(self) -> None:
        """Commit what can be, and tell those who wait for it."""
        leading = self.leading
        if leading is None or not leading.advance(self.log.acknowledged_offset, self._replication.now_ms()):
            return
        if self.parked and self.leads:
            self.parked.release(leading.high_watermark, self._refusal(leading))
        self.partition.more_is_readable()

    def _refusal(self, leading: Leading) -> NotEnoughReplicasAfterAppend | None:
        if leading.has_enough(self.partition.min_insync_replicas):
            return None
        return NotEnoughReplicasAfterAppend(f"{self.partition.at} has {len(leading.isr)} replicas in sync")

    def has_committed(self, offset: int) -> bool:
        """Whether nobody has to be waited for, as where no other replica is in sync, or for what came twice."""
        leading = self.leading
        return leading is not None and leading.high_watermark > offset and self._refusal(leading) is None

    def replicated(self, last_offset: int, timeout_s: float) -> asyncio.Future[None]:
        """Done when everything up to this offset is committed."""
        self.check_leads()
        future = self.parked.park(last_offset, timeout_s)
        if self.leading is not None and self.leading.high_watermark > last_offset:
            self.parked.release(self.leading.high_watermark, self._refusal(self.leading))
        return future

    def deleted_everywhere(self, offset: int, timeout_s: float) -> asyncio.Future[None]:
        """Done when the logs of all in-sync and eligible replicas start at `offset` or later. They are told now."""
        self.check_leads()
        if self.deletions is None:
            self.deletions = ParkedAppends()
        future = self.deletions.park(offset - 1, timeout_s)
        self.release_deletions()
        for wait in tuple(self.waits):
            wait.give_up()
        return future

    @property
    def low_watermark(self) -> int:
        return self.check_leads().low_watermark(self.log.start_offset)

    def release_deletions(self) -> None:
        if self.deletions and self.leads:
            self.deletions.release(self.low_watermark, None)

    def expire_parked(self, now_s: float) -> None:
        at = self.partition.at
        if self.parked:
            self.parked.expire(now_s, lambda: RequestTimedOut(f"{at}: not replicated in time"))
        if self.deletions:
            self.release_deletions()  # the ISR may have shrunk
            self.deletions.expire(
                now_s, lambda: RequestTimedOut(f"{at}: in-sync or eligible replicas did not delete in time")
            )

    def fetched(self, node: int, offset: int, start_offset: int, broker_epoch: int) -> None:
        """A follower has what is below `offset`."""
        leading = self.check_leads()
        leading.fetched(node, offset, start_offset, self.log.next_offset, self._replication.now_ms(), broker_epoch)
        self.advance()
        self.release_deletions()
        log = self.log
        isr = leading.with_joining(node, log.start_offset) or leading.without_late(
            log.next_offset, self._replication.now_ms()
        )
        if isr is not None:
            self._replication.propose_isr(self, isr)

    def look_for_late(self) -> None:
        if self.leads and self.leading is not None:
            now_ms = self._replication.now_ms()
            self.advance()
            isr = self.leading.without_late(self.log.next_offset, now_ms)
            if isr is not None:
                self._replication.propose_isr(self, isr)

    @property
    def throttling(self) -> Throttling:
        return self._replication.throttling

    # Following

    def follow_to(self, leader_high_watermark: int) -> None:
        """Take over what the leader says is committed, as far as it is here."""
        own = min(self.high_watermark, self.log.next_offset)
        committed = followed_high_watermark(own, leader_high_watermark, self.log.next_offset)
        has_moved = committed > self.high_watermark
        self._followed_high_watermark = committed
        if has_moved:
            self.partition.more_is_readable()

    def start_raised(self) -> None:
        """The log starts later, as its leader's."""
        self._replication.note_start(self)

    def cut_high_watermark(self) -> None:
        """The log has been cut."""
        self._followed_high_watermark = min(self.high_watermark, self.log.next_offset)
