"""What can be set about the workers that share a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_MOST_WORKERS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersConfig:
    count: int = 0
    """How many broker processes share this machine and its Kafka port, each leading some partitions. 0 for one broker
    without a supervisor."""
    first_port: int = 0
    """The first of the workers' own Kafka ports, one for each worker and listener; 0 for the ports that follow the
    highest listener's, or free ones if that is a free one itself."""
    first_http_port: int = 0
    """Worker 0 serves http.port. With this the others serve HTTP too, with their own /metrics, from this port on."""

    def __post_init__(self) -> None:
        if not 0 <= self.count <= _MOST_WORKERS:
            raise ValueError(f"count must be between 0 and {_MOST_WORKERS}, got {self.count}")
        for name in ("first_port", "first_http_port"):
            if not 0 <= getattr(self, name) <= 65535:
                raise ValueError(f"{name} must be between 0 and 65535, got {getattr(self, name)}")
