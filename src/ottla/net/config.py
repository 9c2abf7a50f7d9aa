"""What can be set about the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_AT_LEAST_ONE: Final = (
    "max_frame_bytes",
    "max_connections",
    "max_connections_per_address",
    "max_idle_ms",
    "max_stalled_ms",
    "max_held_bytes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetConfig:
    host: str = "127.0.0.1"
    """The address to listen on. Anything but a loopback address lets other machines in."""
    port: int = 9092
    """The Kafka port; 0 picks a free one."""
    advertised: str = ""
    """The host:port that clients are told to connect to; without it, the address they reached us at."""
    max_frame_bytes: int = 100 * 1024 * 1024
    """The largest request that is read; a larger one closes its connection."""
    max_connections: int = 20_000
    """How many clients may be connected at once."""
    max_connections_per_address: int = 20_000
    """How many clients may be connected from one address at once."""
    max_idle_ms: int = 600_000
    """Close a connection on which nothing has happened for this long."""
    max_stalled_ms: int = 30_000
    """Close a connection that has sent half a request, or not read its answer, for this long."""
    max_held_bytes: int = 512 * 1024 * 1024
    """How much may be held in memory of half-sent requests, and of unread answers, for all clients together."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port must be between 0 and 65535, got {self.port}")
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.advertised:
            parse_address(self.advertised)


def parse_address(text: str) -> tuple[str, int]:
    """Split host:port; an IPv6 host is in brackets."""
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) <= 65535:
        raise ValueError(f"advertised must be an address such as kafka.example:9092, got {text!r}")
    return host.strip("[]"), int(port)
