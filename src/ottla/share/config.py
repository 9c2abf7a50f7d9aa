"""Share group settings, named after Kafka's without the prefix `group.share.`."""

from __future__ import annotations

from msgspec import Struct


class ShareConfig(Struct, frozen=True, kw_only=True):
    record_lock_duration_ms: int = 30_000
    """group.share.record.lock.duration.ms: how long an acquired record is locked."""
    delivery_count_limit: int = 5
    """group.share.delivery.count.limit: how often a record is delivered before it is archived."""
    partition_max_record_locks: int = 2000
    """group.share.partition.max.record.locks: the maximum number of records in flight per partition."""
    session_timeout_ms: int = 45_000
    """group.share.session.timeout.ms: the session timeout of members."""
    heartbeat_interval_ms: int = 5_000
    """group.share.heartbeat.interval.ms: the heartbeat interval of members."""
    max_size: int = 200
    """group.share.max.size: the maximum number of members of a share group."""
    max_share_sessions: int = 2000
    """group.share.max.share.sessions: the maximum number of share sessions on this broker."""
    state_topic_partitions: int = 0
    """share.coordinator.state.topic.num.partitions: partitions of __share_group_state when it is created; 0 for
    the default: 1 standalone, 12 in a cluster."""
    state_updates_per_snapshot: int = 500
    """share.coordinator.snapshot.update.records.per.snapshot: after this many updates of a partition a snapshot is
    written, and older records can be deleted."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            least = 0 if name == "state_topic_partitions" else 1
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.session_timeout_ms <= self.heartbeat_interval_ms:
            raise ValueError(
                f"session_timeout_ms must be longer than heartbeat_interval_ms, "
                f"got {self.session_timeout_ms} and {self.heartbeat_interval_ms}"
            )
