"""What can be set about the broker."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    data_dir: Path = Path("data")
    """The folder that holds everything."""
    node_id: int = 0
    """This broker's number in the cluster."""
    auto_create_topics: bool = True
    """Create a topic when a client first asks for it."""
    default_partitions: int = 1
    """How many partitions a topic gets when nobody says."""
    offsets_topic_partitions: int = 1
    """How many partitions `__consumer_offsets` is created with."""
    fetch_max_bytes: int = 57_671_680
    """The most that one fetch may return, whatever it asks for."""
    max_fetch_sessions: int = 1000
    """How many incremental fetch sessions are remembered; the longest unused one makes room."""
    retention_check_interval_ms: int = 300_000
    """How often old segments are looked for."""
    checkpoint_interval_ms: int = 60_000
    """How often it is noted how far each log is on the disk."""
    drain_timeout_ms: int = 5_000
    """How long a stop waits for requests under way."""

    def __post_init__(self) -> None:
        for name in ("default_partitions", "offsets_topic_partitions", "fetch_max_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.node_id < 0:
            raise ValueError(f"node_id must be at least 0, got {self.node_id}")
