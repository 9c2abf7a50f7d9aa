"""Network settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

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


class NetConfig(Struct, frozen=True, kw_only=True):
    host: str = _HOST
    """The address to listen on. Anything but a loopback address allows connections from other machines."""
    port: int = _PORT
    """The Kafka port; 0 uses a free one."""
    advertised: str = ""
    """The advertised host:port; without it, the address that the client connected to."""
    listeners: tuple[str | dict[str, Any], ...] = ()
    """The listeners, for several listeners or other protocols: tables [[net.listeners]], or e.g.
    "SASL_SSL://0.0.0.0:9093". They replace host, port and advertised."""
    max_frame_bytes: int = 100 * 1024 * 1024
    """Maximum request size; a larger request closes its connection."""
    max_frame_bytes_without_records: int = 8 * 1024 * 1024
    """The same for requests other than Produce."""
    max_connections: int = 20_000
    """Maximum number of connections."""
    max_connections_per_address: int = 20_000
    """Maximum number of connections per client address."""
    max_connections_per_address_overrides: tuple[str, ...] = ()
    """Overrides for single addresses, such as "10.0.0.7:100"; 0 refuses the address."""
    max_connections_per_user: int = 0
    """Maximum number of Kafka connections per authenticated user; 0 means no limit."""
    max_connection_rate_per_address: int = 0
    """Maximum number of new connections per second and client address; 0 means no limit."""
    max_idle_ms: int = 600_000
    """Close a connection that has been idle for this long."""
    max_stalled_ms: int = 30_000
    """Close a connection with an incomplete request, or an unread response, without progress for this long."""
    max_held_bytes: int = 512 * 1024 * 1024
    """Memory limit for incomplete requests and unread responses, for all clients together."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port must be between 0 and 65535, got {self.port}")
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("max_connection_rate_per_address", "max_connections_per_user"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        self.connections_by_address()
        if self.advertised:
            parse_address(self.advertised)
        if self.listeners:
            self._check_listeners()

    def connections_by_address(self) -> dict[str, int]:
        """The limits of addresses that have their own."""
        limits = {}
        for text in self.max_connections_per_address_overrides:
            address, colon, most = text.rpartition(":")
            if not (address and colon and most.isascii() and most.isdigit()):
                raise ValueError(f'max_connections_per_address_overrides must be such as "10.0.0.7:100", got {text!r}')
            limits[address.strip("[]")] = int(most)
        return limits

    def _check_listeners(self) -> None:
        from ottla.net.listener_config import parse_listeners

        for name, usual in (("host", _HOST), ("port", _PORT), ("advertised", "")):
            if getattr(self, name) != usual:
                raise ValueError(f"{name} and listeners are mutually exclusive; set it in listeners")
        for listener in parse_listeners(self.listeners):
            if listener.advertised:
                parse_address(listener.advertised)

    def all_listeners(self, security: SecurityConfig) -> tuple[ListenerConfig, ...]:
        """Every listener with all applicable settings; ValueError if they conflict."""
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
