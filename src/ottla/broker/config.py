"""Settings of the broker."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

_LEAST_COMPACTION_MEMORY = 1 << 20
_AT_LEAST_ONE = (
    "max_partitions",
    "max_decompressed_bytes",
    "max_decompression_ratio",
    "max_decompressed_request_bytes",
)


class BrokerConfig(Struct, frozen=True, kw_only=True):
    data_dir: Path = Path("data")
    """The data folder."""
    node_id: int = 0
    """The id of this broker in the cluster."""
    auto_create_topics: bool = True
    """Create a topic when a client first requests it."""
    allow_internal_topic_deletion: bool = False
    """Let clients delete `__consumer_offsets` and other internal topics, with all groups or transactions in them."""
    max_partitions: int = 100_000
    """The maximum number of partitions of all topics of this broker or cluster; requests for more get
    POLICY_VIOLATION."""
    max_auto_created_topics_per_s: int = 100
    """The maximum number of topics that are created automatically per second; 0 for no limit."""
    default_partitions: int = 1
    """The number of partitions of topics that are created without one."""
    offsets_topic_partitions: int = 0
    """The number of partitions of `__consumer_offsets`; 0 for the default: 1 standalone, 12 in a cluster."""
    fetch_max_bytes: int = 57_671_680
    """The maximum size of a fetch response."""
    max_fetch_sessions: int = 1000
    """The maximum number of incremental fetch sessions; the least recently used one is evicted."""
    retention_check_interval_ms: int = 300_000
    """How often retention checks for old segments."""
    checkpoint_interval_ms: int = 60_000
    """How often recovery points are checkpointed."""
    compaction_check_interval_ms: int = 15_000
    """How often compacted topics are checked."""
    compaction_memory_bytes: int = 128 * 1024 * 1024
    """Memory for the keys of a log during compaction; a log with more keys takes several passes."""
    compaction_max_bytes_per_s: int = -1
    """The maximum bytes per second that compaction reads; -1 for no limit."""
    max_decompressed_bytes: int = 32 * 1024 * 1024
    """The maximum size of a decompressed batch. The broker decompresses for `compression.type`, compacted topics, share
    groups, timestamp lookups, REST and DMQP. A larger `max.message.bytes` of a topic takes precedence."""
    max_decompression_ratio: int = 1_000
    """The maximum ratio of decompressed to compressed size, beyond 4 MiB."""
    max_decompressed_request_bytes: int = 256 * 1024 * 1024
    """The maximum decompressed bytes per request."""
    drain_timeout_ms: int = 5_000
    """How long a shutdown waits for requests in progress."""

    def __post_init__(self) -> None:
        for name, least in (("default_partitions", 1), ("offsets_topic_partitions", 0), ("fetch_max_bytes", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.max_auto_created_topics_per_s < 0:
            raise ValueError(
                f"max_auto_created_topics_per_s must be at least 0, got {self.max_auto_created_topics_per_s}"
            )
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.compaction_memory_bytes < _LEAST_COMPACTION_MEMORY:
            raise ValueError(f"compaction_memory_bytes must be at least 1 MiB, got {self.compaction_memory_bytes}")
        if self.compaction_max_bytes_per_s < -1 or self.compaction_max_bytes_per_s == 0:
            raise ValueError(
                f"compaction_max_bytes_per_s must be -1 or more than 0, got {self.compaction_max_bytes_per_s}"
            )
        if self.node_id < 0:
            raise ValueError(f"node_id must be at least 0, got {self.node_id}")
