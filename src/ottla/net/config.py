"""What can be set about the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ottla.net.listener_config import ListenerConfig
    from ottla.net.security_config import SecurityConfig

_HOST: Final = "127.0.0.1"
_PORT: Final = 9092
_AT_LEAST_ONE: Final = (
    "max_frame_bytes",
    "max_frame_bytes_without_records",
    "max_connections",
    "max_connections_per_address",
    "max_idle_ms",
    "max_stalled_ms",
    "max_held_bytes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetConfig:
    host: str = _HOST
    """The address to listen on. Anything but a loopback address lets other machines in."""
    port: int = _PORT
    """The Kafka port; 0 picks a free one."""
    advertised: str = ""
    """The host:port that clients are told to connect to; without it, the address they reached us at."""
    listeners: tuple[str | dict[str, Any], ...] = ()
    """The listeners, if there are to be several or other than plain text: tables [[net.listeners]], or such as
    "SASL_SSL://0.0.0.0:9093". They take the place of host, port and advertised."""
    max_frame_bytes: int = 100 * 1024 * 1024
    """The largest request that is read; a larger one closes its connection."""
    max_frame_bytes_without_records: int = 8 * 1024 * 1024
    """The same for requests other than Produce."""
    max_connections: int = 20_000
    """How many clients may be connected at once."""
    max_connections_per_address: int = 20_000
    """How many clients may be connected from one address at once."""
    max_connection_rate_per_address: int = 0
    """How many connections one address may open in a second; 0 for any number."""
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
        if self.max_connection_rate_per_address < 0:
            raise ValueError(
                f"max_connection_rate_per_address must be at least 0, got {self.max_connection_rate_per_address}"
            )
        if self.advertised:
            parse_address(self.advertised)
        if self.listeners:
            self._check_listeners()

    def _check_listeners(self) -> None:
        from ottla.net.listener_config import parse_listeners

        for name, usual in (("host", _HOST), ("port", _PORT), ("advertised", "")):
            if getattr(self, name) != usual:
                raise ValueError(f"{name} and listeners cannot both be given: say it in listeners")
        for listener in parse_listeners(self.listeners):
            if listener.advertised:
                parse_address(listener.advertised)

    def all_listeners(self, security: SecurityConfig) -> tuple[ListenerConfig, ...]:
        """Every listener with all that applies to it; ValueError if that does not fit together."""
        from ottla.net.listener_config import ListenerConfig, parse_listeners

        if not self.listeners:
            return (ListenerConfig(host=self.host, port=self.port, advertised=self.advertised),)
        return tuple(one.completed(security) for one in parse_listeners(self.listeners))


def parse_address(text: str) -> tuple[str, int]:
    """Split host:port; an IPv6 host is in brackets."""
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) <= 65535:
        raise ValueError(f"advertised must be an address such as kafka.example:9092, got {text!r}")
    return host.strip("[]"), int(port)
