"""Group settings, named after Kafka's, with underscores for dots, without the prefix."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

ASSIGNOR_NAMES: Final = frozenset({"uniform", "range"})
_MAX_INT32 = (1 << 31) - 1


class GroupConfig(Struct, frozen=True, kw_only=True):
    min_session_timeout_ms: int = 6_000
    """group.min.session.timeout.ms: the minimum session timeout of a member."""
    max_session_timeout_ms: int = 1_800_000
    """group.max.session.timeout.ms: the maximum session timeout of a member."""
    initial_rebalance_delay_ms: int = 0
    """group.initial.rebalance.delay.ms: how long the first members of an empty group wait for others to join.
    Zero, where Kafka has 3000: in tests and on laptops the delay only costs time; when many
    consumers start together it saves rebalances."""
    max_size: int = _MAX_INT32
    """group.max.size: the maximum number of members of a group."""
    new_member_join_timeout_ms: int = 300_000
    """How long a new member may wait for its first response before it is removed. Fixed in Kafka."""
    offsets_retention_minutes: int = 10_080
    """offsets.retention.minutes: how long offsets are kept after their group became empty, or after the last
    commit for a topic that the group no longer subscribes to."""
    offsets_retention_check_interval_ms: int = 600_000
    """offsets.retention.check.interval.ms: how often to check for expired offsets."""
    offset_metadata_max_bytes: int = 4096
    """offset.metadata.max.bytes: maximum length of commit metadata. Counted in characters, as in Kafka."""

    max_id_length: int = 1024
    """Characters of a group id, member id, group instance id, rack id or client id of a member. 32,767 in Kafka."""
    max_member_bytes: int = 1 << 20
    """Metadata or subscription that a member may join with. In Kafka, as here, max.message.bytes of
    __consumer_offsets is the limit for all members of a group together once they have their assignments."""
    max_memory_bytes: int = 256 << 20
    """Memory for all groups, their members and their committed offsets, estimated. No limit in Kafka."""

    consumer_session_timeout_ms: int = 45_000
    """group.consumer.session.timeout.ms: the session timeout of consumer group members."""
    consumer_min_session_timeout_ms: int = 45_000
    """group.consumer.min.session.timeout.ms: the minimum session timeout of a group."""
    consumer_max_session_timeout_ms: int = 60_000
    """group.consumer.max.session.timeout.ms: the maximum session timeout of a group."""
    consumer_heartbeat_interval_ms: int = 5_000
    """group.consumer.heartbeat.interval.ms: the heartbeat interval of consumer group members. Each
    step of a rebalance takes a heartbeat."""
    consumer_min_heartbeat_interval_ms: int = 5_000
    """group.consumer.min.heartbeat.interval.ms: the minimum heartbeat interval of a group."""
    consumer_max_heartbeat_interval_ms: int = 15_000
    """group.consumer.max.heartbeat.interval.ms: the maximum heartbeat interval of a group."""
    consumer_max_size: int = _MAX_INT32
    """group.consumer.max.size: the maximum number of members of a consumer group."""
    consumer_max_patterns: int = 16
    """The maximum number of different regular expressions in a consumer group. Each is matched against all
    topics whenever they change. No limit in Kafka."""
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """group.consumer.assignors: the enabled assignors; the first is the default."""
    consumer_migration_policy: Literal["disabled", "upgrade", "downgrade", "bidirectional"] = "bidirectional"
    """group.consumer.migration.policy: whether a classic group is converted to a consumer group when the first member
    with the new protocol joins, and back when the last one leaves."""

    def __post_init__(self) -> None:
        _at_least(1, min_session_timeout_ms=self.min_session_timeout_ms, max_size=self.max_size)
        _at_least(1, new_member_join_timeout_ms=self.new_member_join_timeout_ms)
        _at_least(1, offsets_retention_minutes=self.offsets_retention_minutes)
        _at_least(1, offsets_retention_check_interval_ms=self.offsets_retention_check_interval_ms)
        _at_least(0, initial_rebalance_delay_ms=self.initial_rebalance_delay_ms)
        _at_least(0, offset_metadata_max_bytes=self.offset_metadata_max_bytes)
        _at_least(1, max_id_length=self.max_id_length)
        _at_least(1024, max_member_bytes=self.max_member_bytes, max_memory_bytes=self.max_memory_bytes)
        if self.max_session_timeout_ms < self.min_session_timeout_ms:
            raise ValueError(
                f"max_session_timeout_ms must be at least min_session_timeout_ms, "
                f"got {self.max_session_timeout_ms} and {self.min_session_timeout_ms}"
            )

        _at_least(1, consumer_min_heartbeat_interval_ms=self.consumer_min_heartbeat_interval_ms)
        _at_least(1, consumer_max_size=self.consumer_max_size, consumer_max_patterns=self.consumer_max_patterns)
        for name in ("consumer_{}session_timeout_ms", "consumer_{}heartbeat_interval_ms"):
            least, value, most = (getattr(self, name.format(bound)) for bound in ("min_", "", "max_"))
            if not least <= value <= most:
                raise ValueError(f"{name.format('')} must be between {least} and {most}, got {value}")
        if self.consumer_session_timeout_ms <= self.consumer_heartbeat_interval_ms:
            raise ValueError("consumer_session_timeout_ms must be greater than consumer_heartbeat_interval_ms")
        if not self.consumer_assignors or not set(self.consumer_assignors) <= ASSIGNOR_NAMES:
            known = ", ".join(sorted(ASSIGNOR_NAMES))
            raise ValueError(f"consumer_assignors must be some of {known}, got {self.consumer_assignors}")

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * 60_000


def _at_least(least: int, **settings: int) -> None:
    for name, value in settings.items():
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
