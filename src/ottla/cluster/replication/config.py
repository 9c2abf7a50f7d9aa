"""Settings of replication."""

from __future__ import annotations

from msgspec import Struct


class ReplicationConfig(Struct, frozen=True, kw_only=True):
    replica_lag_time_max_ms: int = 30_000
    """A replica that has not caught up with its leader for this long leaves the ISR."""
    replica_fetch_wait_max_ms: int = 500
    """How long a leader holds a follower's fetch when there are no new records."""
    replica_fetch_max_bytes: int = 1 << 20
    """The maximum bytes of one partition in a follower's fetch."""
    replica_fetch_response_max_bytes: int = 10 << 20
    """The maximum bytes of a follower's fetch."""
    replica_fetch_backoff_ms: int = 200
    """How long a follower waits after an error."""
    high_watermark_checkpoint_interval_ms: int = 5_000
    """How often high watermarks are checkpointed."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
