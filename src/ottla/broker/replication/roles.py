"""The roles of a replica: leader, follower, offline. A leader applies the rules in `cluster/replication/leading`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.replication.parking import ParkedAppends
from ottla.broker.requests.waiting import Waiters
from ottla.broker.roles import ALL_REPLICAS, Role
from ottla.cluster.replication.nearby import preferred_read_replica
from ottla.core.errors import (
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    OffsetOutOfRange,
    RequestTimedOut,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ottla.broker.replication.replica import Replica
    from ottla.broker.replication.replication import Replication
    from ottla.cluster.replication.leading import Leading
    from ottla.storage.partition_log import PartitionLog


class _ReplicaRole(Role):
    __slots__ = ("_replica",)

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica.partition)
        self._replica = replica

    @property
    def is_here(self) -> bool:
        return self._replica.is_here

    @property
    def leads(self) -> bool:
        return False

    @property
    def leader(self) -> tuple[int, int]:
        return self._replica.leader, self._replica.leader_epoch

    @property
    def term(self) -> object:
        return None

    def check_leads(self) -> None:
        raise self._replica.not_leader()

    def check_can_append(self, acks: int) -> None:  # noqa: ARG002
        raise self._replica.not_leader()

    def check_settled(self) -> None:
        raise self._replica.not_leader()

    def open_log(self, open_: Callable[[], PartitionLog]) -> PartitionLog:
        if not self._replica.is_here:
            raise NotLeaderOrFollower(f"{self._partition.at} has no replica on this broker")
        return self._replica.open_log(open_)

    def log_failed(self, log: PartitionLog, why: str) -> None:
        self._replica.log_failed(log, why)

    def is_safe(self, offset: int, acks: int) -> bool:  # noqa: ARG002
        return False

    def replicated(self, _offset: int, _timeout_s: float) -> asyncio.Future[None] | None:
        raise self._replica.not_leader()

    @property
    def high_watermark(self) -> int:
        return self._replica.followed_high_watermark

    @property
    def low_watermark(self) -> int:
        raise self._replica.not_leader()

    def deleted_everywhere(self, _offset: int, _timeout_s: float) -> asyncio.Future[None] | None:
        raise self._replica.not_leader()

    @property
    def retention_limit(self) -> int | None:
        return self.high_watermark

    @property
    def is_in_sync_everywhere(self) -> bool:
        # A follower may learn late that a replica left the ISR, and a fenced one does not learn it at all.
        state = self._replica.state
        return state is not None and not self._replica.is_fenced and set(state.replicas) <= set(state.isr)

    def check_consumer(self, offset: int, rack_id: str) -> None:
        # A consumer with a rack was sent here by the leader (KIP-392).
        if not rack_id or not self.is_here:
            raise self._replica.not_leader()
        if offset > self.high_watermark:
            raise OffsetNotAvailable(f"{self._partition.at} is not yet replicated to offset {offset}")

    def check_follower(self, follower: int, offset: int, broker_epoch: int) -> None:  # noqa: ARG002
        raise self._replica.not_leader()


class Follower(_ReplicaRole):
    """Copies the leader's log. Also used for a partition that has no leader, or no replica on this broker."""

    __slots__ = ()


class Offline(Follower):
    """A follower whose log failed or cannot be opened; opening is retried with backoff."""

    __slots__ = ()

    is_offline = True


class Leader(_ReplicaRole):
    """The leader of a partition in one leader epoch."""

    __slots__ = ("_deletions", "_followers_waits", "_parked", "_replication", "leading")

    def __init__(self, replica: Replica, replication: Replication, leading: Leading, parked: ParkedAppends) -> None:
        super().__init__(replica)
        self.leading = leading
        self._replication = replication
        self._parked = parked
        self._deletions: ParkedAppends | None = None
        """DeleteRecords requests that wait for in-sync replicas; most partitions never have any."""
        self._followers_waits = Waiters()
        """Fetches of followers, which see records before they are committed."""

    def hand_over(self) -> ParkedAppends:
        """The waiting appends, for the same broker's next epoch."""
        parked, self._parked = self._parked, ParkedAppends()
        return parked

    def fail_parked(self) -> None:
        """Stop leading: fail the requests that wait for other replicas, and wake waiting fetches."""
        self._parked.fail_all(self._replica.not_leader())
        if self._deletions is not None:
            self._deletions.fail_all(self._replica.not_leader())
        self._followers_waits.end()
        self._partition.waits.end()

    # Leadership

    @property
    def leads(self) -> bool:
        """Whether this broker leads. Checked before every action of a leader: a process that was paused for long finds
        out here that it is fenced.
        """
        return not self._replication.is_fenced

    @property
    def term(self) -> object:
        return self.leading

    def check_leads(self) -> None:
        if self._replication.is_fenced:
            raise self._replica.not_leader()

    def check_can_append(self, acks: int) -> None:
        self.check_leads()
        if acks == ALL_REPLICAS and not self.leading.has_enough(self._partition.min_insync_replicas):
            raise NotEnoughReplicas(f"{self._partition.at} has {len(self.leading.isr)} replicas in sync")

    def check_settled(self) -> None:
        self.check_leads()
        if not self.leading.is_settled:
            raise OffsetNotAvailable(f"{self._partition.at}: the new leader does not know the high watermark yet")

    # Appending

    @property
    def high_watermark(self) -> int:
        return self.leading.high_watermark

    def appended(self, size: int) -> None:
        """Wake followers, which can read the bytes now; consumers can once they are committed."""
        self._followers_waits.got(size)
        self.advance()

    def synced(self) -> None:
        self.advance()

    def advance(self) -> None:
        """Advance the high watermark as far as possible, and complete the requests that wait for it."""
        leading = self.leading
        if not leading.advance(self._partition.log.acknowledged_offset, self._replication.now_ms()):
            return
        if self._parked and self.leads:
            self._parked.release(leading.high_watermark, self._refusal())
        self._partition.waits.end()

    def _refusal(self) -> NotEnoughReplicasAfterAppend | None:
        if self.leading.has_enough(self._partition.min_insync_replicas):
            return None
        return NotEnoughReplicasAfterAppend(f"{self._partition.at} has {len(self.leading.isr)} replicas in sync")

    def is_safe(self, offset: int, acks: int) -> bool:
        if self._partition.is_synced_first:
            return False
        # Committed at once if no other replica is in sync, and for duplicates.
        return acks != ALL_REPLICAS or (self.leading.high_watermark > offset and self._refusal() is None)

    def replicated(self, offset: int, timeout_s: float) -> asyncio.Future[None]:
        self.check_leads()
        future = self._parked.park(offset, timeout_s)
        if self.leading.high_watermark > offset:
            self._parked.release(self.leading.high_watermark, self._refusal())
        return future

    # Deleting

    @property
    def low_watermark(self) -> int:
        self.check_leads()
        return self.leading.low_watermark(self._partition.log.start_offset)

    @property
    def is_in_sync_everywhere(self) -> bool:
        return self.leading.is_complete

    def deleted_everywhere(self, offset: int, timeout_s: float) -> asyncio.Future[None]:
        """Wake followers, so that they learn the new log start offset now."""
        self.check_leads()
        if self._deletions is None:
            self._deletions = ParkedAppends()
        future = self._deletions.park(offset - 1, timeout_s)
        self._release_deletions()
        self._followers_waits.give_up()
        return future

    def _release_deletions(self) -> None:
        if self._deletions and self.leads:
            self._deletions.release(self.low_watermark, None)

    def expire_parked(self, now_s: float) -> None:
        at = self._partition.at
        if self._parked:
            self._parked.expire(now_s, lambda: RequestTimedOut(f"{at}: not replicated in time"))
        if self._deletions:
            self._release_deletions()  # the ISR may have shrunk
            self._deletions.expire(
                now_s, lambda: RequestTimedOut(f"{at}: in-sync or eligible replicas did not delete in time")
            )

    # Consumers

    def check_consumer(self, offset: int, rack_id: str) -> None:
        if not self.leads:
            super().check_consumer(offset, rack_id)

    def preferred_read_replica(self, rack_id: str, offset: int) -> int | None:
        return preferred_read_replica(self.leading, self._replica.brokers, rack_id, offset)

    # Followers

    def check_follower(self, follower: int, offset: int, broker_epoch: int) -> None:
        self.check_leads()
        log = self._partition.log
        if not log.start_offset <= offset <= log.next_offset:
            raise OffsetOutOfRange(f"{offset} is not in {log.start_offset}..{log.next_offset}")
        removed_until = log.removed_tombstones.until
        if not self.leading.may_continue(follower, offset, broker_epoch, log.start_offset, removed_until):
            raise OffsetOutOfRange(f"tombstones from {offset} to {removed_until} are removed: copy the whole log")

    def record_fetch(self, follower: int, offset: int, start_offset: int, broker_epoch: int) -> None:
        leading, log, now_ms = self.leading, self._partition.log, self._replication.now_ms()
        leading.fetched(follower, offset, start_offset, log.next_offset, now_ms, broker_epoch)
        self.advance()
        self._release_deletions()
        isr = leading.with_joining(follower, log.start_offset) or leading.without_late(log.next_offset, now_ms)
        if isr is not None:
            self._replication.propose_isr(self._replica, isr)

    def shrink_isr(self) -> None:
        """Propose an ISR without followers that fell behind."""
        if self.leads:
            now_ms = self._replication.now_ms()
            self.advance()
            isr = self.leading.without_late(self._partition.log.next_offset, now_ms)
            if isr is not None:
                self._replication.propose_isr(self._replica, isr)

    def end_for_followers(self, isolation_level: int) -> int:  # noqa: ARG002
        return self._partition.log.next_offset

    def waiters_of(self, _follower: int) -> Waiters:
        return self._followers_waits

    def wait_to_send_s(self, follower: int) -> float:
        return self._replication.throttling.wait_to_send_s(self._replica, follower)

    def sendable(self, follower: int, room: int) -> int:
        return self._replication.throttling.room(self._replica, follower, room)

    def sent(self, follower: int, size: int) -> None:
        self._replication.throttling.sent(self._replica, follower, size)
