"""Log settings. Topic settings have Kafka's names with underscores for dots."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

CleanupPolicy = Literal["delete", "compact", "compact,delete"]
FlushPolicy = Literal["os", "interval", "ack"]
TimestampType = Literal["CreateTime", "LogAppendTime"]

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_MAX_INT64 = (1 << 63) - 1


class LogConfig(Struct, frozen=True, kw_only=True):
    segment_bytes: int = 1 << 30
    """Roll to a new segment before it exceeds this size."""
    segment_ms: int = 7 * _DAY_MS
    """Roll to a new segment after this time."""
    segment_index_bytes: int = 10 << 20
    """Roll to a new segment when an index reaches this size."""
    index_interval_bytes: int = 4096
    """Maximum number of batch bytes between two index entries."""
    retention_ms: int = 7 * _DAY_MS
    """Delete segments whose newest record is older than this; -1 for no limit."""
    retention_bytes: int = -1
    """Delete the oldest segments of a partition above this size; -1 for no limit."""
    cleanup_policy: CleanupPolicy = "delete"
    """What happens to old segments: deleted, compacted to the last value per key, or both."""
    max_message_bytes: int = 1_048_588
    """Maximum size of a record batch."""
    message_timestamp_type: TimestampType = "CreateTime"
    """Whether records keep their producer's timestamp or get the append time."""
    message_timestamp_before_max_ms: int = _MAX_INT64
    """Maximum age of a producer's timestamp."""
    message_timestamp_after_max_ms: int = _HOUR_MS
    """How far in the future a producer's timestamp may be."""
    producer_id_expiration_ms: int = _DAY_MS
    """Expire a producer's state after it has been idle for this long."""
    flush: FlushPolicy = "interval"
    """When data is synced: by the operating system, every `flush_interval_ms`, or before each
    acknowledgement. A killed process loses nothing with any of them; a power failure loses nothing with "ack"."""
    flush_interval_ms: int = 1000
    """The fsync interval when `flush` is "interval"."""

    encryption_key_version: int = 0
    """Encrypt each partition with a separate key, of this version; 0 for the keys of the data folder."""

    def __post_init__(self) -> None:
        _at_least(1024, segment_bytes=self.segment_bytes, segment_index_bytes=self.segment_index_bytes)
        _at_least(1, segment_ms=self.segment_ms, producer_id_expiration_ms=self.producer_id_expiration_ms)
        _at_least(1, flush_interval_ms=self.flush_interval_ms)
        _at_least(0, index_interval_bytes=self.index_interval_bytes, max_message_bytes=self.max_message_bytes)
        _at_least(0, message_timestamp_before_max_ms=self.message_timestamp_before_max_ms)
        _at_least(0, message_timestamp_after_max_ms=self.message_timestamp_after_max_ms)
        _at_least(0, encryption_key_version=self.encryption_key_version)
        _at_least(-1, retention_ms=self.retention_ms, retention_bytes=self.retention_bytes)
        # Positions in a segment are 32-bit in Kafka's index files.
        if self.segment_bytes > (1 << 31) - 1:
            raise ValueError(f"segment_bytes must be below 2 GiB, got {self.segment_bytes}")


def _at_least(least: int, **settings: int) -> None:
    for name, value in settings.items():
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
