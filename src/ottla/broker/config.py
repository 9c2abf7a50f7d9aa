"""What can be set about the broker."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_LEAST_COMPACTION_MEMORY = 1 << 20
_AT_LEAST_ONE = (
    "max_partitions",
    "max_decompressed_bytes",
    "max_decompression_ratio",
    "max_decompressed_request_bytes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    data_dir: Path = Path("data")
    """The folder that holds everything."""
    node_id: int = 0
    """This broker's number in the cluster."""
    auto_create_topics: bool = True
    """Create a topic when a client first asks for it."""
    allow_internal_topic_deletion: bool = False
    """Let clients delete `__consumer_offsets` and other internal topics, with all groups or transactions in them."""
    max_partitions: int = 100_000
    """How many partitions there may be in all topics of this broker or cluster; more are refused with
    POLICY_VIOLATION."""
    max_auto_created_topics_per_s: int = 100
    """How many topics may be created in a second because clients asked for them; 0 for any number."""
    default_partitions: int = 1
    """How many partitions a topic gets when nobody says."""
    offsets_topic_partitions: int = 0
    """How many partitions `__consumer_offsets` is created with; 0 for the usual: 1 alone, 12 in a cluster."""
    fetch_max_bytes: int = 57_671_680
    """The most that one fetch may return, whatever it asks for."""
    max_fetch_sessions: int = 1000
    """How many incremental fetch sessions are remembered; the longest unused one makes room."""
    retention_check_interval_ms: int = 300_000
    """How often old segments are looked for."""
    checkpoint_interval_ms: int = 60_000
    """How often it is noted how far each log is on the disk."""
    compaction_check_interval_ms: int = 15_000
    """How often compacted topics are looked at for what can be compacted."""
    compaction_memory_bytes: int = 128 * 1024 * 1024
    """What the keys of a log may take while it is compacted; a log with more of them takes several passes."""
    compaction_max_bytes_per_s: int = -1
    """How much is read for compaction in a second at most; -1 sets no limit."""
    max_decompressed_bytes: int = 32 * 1024 * 1024
    """How large a batch may become when the broker decompresses it, which it does for `compression.type`, compacted
    topics, share groups, timestamp look-ups, REST and DMQP. A topic whose `max.message.bytes` is larger takes that."""
    max_decompression_ratio: int = 1_000
    """How many times its size a batch may become, beyond 4 MiB."""
    max_decompressed_request_bytes: int = 256 * 1024 * 1024
    """How much may be decompressed for one request."""
    drain_timeout_ms: int = 5_000
    """How long a stop waits for requests under way."""

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
