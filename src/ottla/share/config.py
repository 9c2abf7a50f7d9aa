"""What can be set about share groups. Every setting bears Kafka's name without `group.share.` before it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareConfig:
    record_lock_duration_ms: int = 30_000
    """group.share.record.lock.duration.ms: how long a record is one consumer's before others may have it."""
    delivery_count_limit: int = 5
    """group.share.delivery.count.limit: how often a record is delivered before it is given up."""
    partition_max_record_locks: int = 2000
    """group.share.partition.max.record.locks: how many records of a partition a group may have in flight."""
    session_timeout_ms: int = 45_000
    """group.share.session.timeout.ms: after how long a silence a member is taken out of its group."""
    heartbeat_interval_ms: int = 5_000
    """group.share.heartbeat.interval.ms: how often members are to send a heartbeat."""
    max_size: int = 200
    """group.share.max.size: how many members a share group may have."""
    max_share_sessions: int = 2000
    """group.share.max.share.sessions: how many members may fetch from this broker at a time."""
    state_topic_partitions: int = 0
    """share.coordinator.state.topic.num.partitions: of __share_group_state, when it is created; 0 for the usual: 1
    alone, 12 in a cluster."""
    state_updates_per_snapshot: int = 500
    """share.coordinator.snapshot.update.records.per.snapshot: after so many changes to a partition all of its state is
    written down anew, and what was written before can go."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            least = 0 if name == "state_topic_partitions" else 1
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.session_timeout_ms <= self.heartbeat_interval_ms:
            raise ValueError(
                f"session_timeout_ms must be longer than heartbeat_interval_ms, "
                f"got {self.session_timeout_ms} and {self.heartbeat_interval_ms}"
            )
