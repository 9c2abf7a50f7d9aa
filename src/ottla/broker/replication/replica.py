"""This broker's replica of one partition: its state in the cluster's view, and changes of its role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.replication.parking import ParkedAppends
from ottla.broker.replication.roles import Follower, Leader, Offline
from ottla.cluster.replication.following import followed_high_watermark
from ottla.cluster.replication.leading import Leading
from ottla.cluster.state import NO_NODE
from ottla.core.errors import NotLeaderOrFollower, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.broker.partition import Partition
    from ottla.broker.replication.replication import Replication
    from ottla.broker.roles import Role
    from ottla.cluster.state import BrokerInfo, PartitionKey, PartitionState
    from ottla.core.errors import ApiError
    from ottla.storage.partition_log import PartitionLog

_NO_EPOCH: Final = -1


class Replica:
    __slots__ = (
        "_checkpointed",
        "_followed_high_watermark",
        "_replication",
        "_role",
        "key",
        "led",
        "offline",
        "partition",
        "refused_epoch",
        "state",
    )

    def __init__(self, partition: Partition, key: PartitionKey, replication: Replication, checkpointed: int) -> None:
        self.partition = partition
        self.key = key
        self.state: PartitionState | None = None
        self.led: Leader | None = None
        """Its role, while it leads."""
        self.refused_epoch = _NO_EPOCH
        """The epoch in which a previous process, or a failed log, was leader. Leading in it again could give the
        offsets of lost records to new ones.
        """
        self.offline: str | None = None
        """Why its log is unusable; None if it is usable."""
        self._replication = replication
        self._checkpointed = checkpointed
        self._followed_high_watermark: int | None = None
        self._role: Role = Follower(self)
        partition.role = self._role

    # State

    @property
    def log(self) -> PartitionLog:
        return self.partition.log

    @property
    def node_id(self) -> int:
        return self._replication.node_id

    @property
    def is_fenced(self) -> bool:
        return self._replication.is_fenced

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
    def leading(self) -> Leading | None:
        return None if self.led is None else self.led.leading

    @property
    def high_watermark(self) -> int:
        return self._role.high_watermark

    @property
    def followed_high_watermark(self) -> int:
        """The high watermark as a follower knows it."""
        if self._followed_high_watermark is None:
            log = self.log
            self._followed_high_watermark = min(max(self._checkpointed, log.start_offset), log.next_offset)
        return self._followed_high_watermark

    def not_leader(self) -> ApiError:
        if self.offline is not None and self.leader in (self.node_id, NO_NODE):
            return self._offline_error()  # there is no other leader
        return NotLeaderOrFollower(f"this broker is not the leader of {self.partition.at}")

    # The log

    def open_log(self, open_: Callable[[], PartitionLog]) -> PartitionLog:
        """Open the log; raises StorageError if it cannot be opened now. Retried after a backoff, not with every
        request.
        """
        if self.offline is not None:
            raise self._offline_error()
        try:
            return open_()
        except Exception as failed:  # other partitions must not be affected
            self._replication.offline.failed(self, str(failed) or repr(failed))
            raise self._offline_error() from failed

    def open_again(self) -> None:
        """Reopen the log from its files, as at a start: after a failure the log in memory is not trusted."""
        high_watermark = self._followed_high_watermark
        if high_watermark is not None:  # it may exceed the remaining records
            self._checkpointed, self._followed_high_watermark = high_watermark, None
        self.go_online()
        self.partition.open()

    def log_failed(self, log: PartitionLog, why: str) -> None:
        """Handle a failed or damaged open log."""
        if self.leader == self.node_id:
            self.refused_epoch = self.leader_epoch
        may_lack_records = log.is_damaged or log.config.flush != "ack"
        self._replication.offline.log_failed(self, why, may_lack_records=may_lack_records, is_final=log.is_damaged)

    def _offline_error(self) -> StorageError:
        return StorageError(f"{self.partition.at} is offline: {self.offline}")

    # Changing roles

    def become_leader(self, state: PartitionState, now_ms: int) -> None:
        before = self._led_until(state.leader_epoch)
        parked = ParkedAppends() if before is None else before.hand_over()
        self.step_down()
        self.state = state
        self.partition.leader_epoch = state.leader_epoch
        log, high_watermark = self.log, self.high_watermark
        lag_ms = self._replication.config.replica_lag_time_max_ms
        leading = Leading(state, log.next_offset, high_watermark, lag_ms=lag_ms, now_ms=now_ms)
        leading.present = self._replication.present
        if before is not None:
            leading.copied_from_start = before.leading.copied_from_start
        self.led = Leader(self, self._replication, leading, parked)
        self._take(self.led)
        self.led.advance()

    def _led_until(self, leader_epoch: int) -> Leader | None:
        """Its role in the previous epoch, if this broker led then, too: no other leader can have changed the log."""
        return self.led if leader_epoch == self.leader_epoch + 1 else None

    def become_follower(self, state: PartitionState) -> None:
        """Become a follower, or have no role if the partition has no replica here."""
        self.step_down()
        self.state = state
        self.partition.leader_epoch = state.leader_epoch

    def go_offline(self, why: str) -> None:
        self.offline = why
        self.step_down()

    def go_online(self) -> None:
        """Return to service, as a follower until the view assigns another role."""
        if self.offline is not None:
            self.offline = None
            self.step_down()

    def step_down(self) -> None:
        led, self.led = self.led, None
        if led is not None:
            self._followed_high_watermark = led.high_watermark
            led.fail_parked()
        self._take(Follower(self) if self.offline is None else Offline(self))
        self.partition.waits.end()

    def _take(self, role: Role) -> None:
        # The partition may already belong to a newer replica: that of a deleted topic may still get changes.
        if self.partition.role is self._role:
            self.partition.role = role
        self._role = role

    # Following

    def follow_to(self, leader_high_watermark: int) -> None:
        """Update the high watermark from the leader, limited by the local end offset."""
        own = min(self.high_watermark, self.log.next_offset)
        committed = followed_high_watermark(own, leader_high_watermark, self.log.next_offset)
        has_moved = committed > self.high_watermark
        self._followed_high_watermark = committed
        if has_moved:
            self.partition.waits.end()

    def cut_high_watermark(self) -> None:
        """Lower the high watermark after a truncation."""
        self._followed_high_watermark = min(self.high_watermark, self.log.next_offset)
