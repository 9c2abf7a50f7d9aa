"""Settings of the workers of one machine."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

_MOST_WORKERS: Final = 256


class WorkersConfig(Struct, frozen=True, kw_only=True):
    count: int = 0
    """The number of broker processes that share this machine and its Kafka port, each leading some partitions. 0 runs
    one broker without a supervisor."""
    first_port: int = 0
    """The first of the workers' separate Kafka ports, one per worker and listener; 0 uses the ports after the highest
    listener port, or free ports if that one is 0."""
    first_http_port: int = 0
    """Worker 0 serves http.port. With this, the other workers serve HTTP with their /metrics as well, from this port
    on."""

    def __post_init__(self) -> None:
        if not 0 <= self.count <= _MOST_WORKERS:
            raise ValueError(f"count must be between 0 and {_MOST_WORKERS}, got {self.count}")
        for name in ("first_port", "first_http_port"):
            if not 0 <= getattr(self, name) <= 65535:
                raise ValueError(f"{name} must be between 0 and 65535, got {getattr(self, name)}")
