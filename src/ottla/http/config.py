"""HTTP settings."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - looked up when values are converted
from typing import Final, Literal

from msgspec import Struct

from ottla.core.config_sources import DEFAULT_HTTP_PORT

_AT_LEAST_ONE: Final = (
    "max_body_bytes",
    "max_held_bytes",
    "max_connections",
    "max_connections_per_address",
    "keep_alive_ms",
    "max_stalled_ms",
)


class HttpConfig(Struct, frozen=True, kw_only=True):
    port: int = DEFAULT_HTTP_PORT
    """The port for REST, metrics and health checks; 0 uses a free one, -1 disables HTTP."""
    host: str = ""
    """The address to listen on; empty for net.host."""
    tls: bool = False
    """Whether to serve HTTPS, with cert_file or that of all listeners (security.cert_file)."""
    cert_file: Path | None = None
    """The certificate of this port, in PEM, if it differs; reloaded when it changes."""
    key_file: Path | None = None
    """The key of cert_file, if it is not in the same file."""
    client_certificates: Literal["none", "requested", "required"] = "none"
    """Whether clients must present a certificate of security.client_ca_file; it authenticates the user it names."""
    cors_origins: tuple[str, ...] = ()
    """Allowed CORS origins, such as "https://app.example", and proxies; "*" allows all."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names of this port, such as "kafka.example", if no authentication is required. IP addresses,
    this machine's host name and names without a dot need not be listed; "*" allows all."""
    max_body_bytes: int = 2 * 1024 * 1024
    """Maximum request body size, and maximum line length of a streamed one; a larger one is answered with 413."""
    max_held_bytes: int = 128 * 1024 * 1024
    """Memory limit for request bodies being received, for all clients together. Beyond, the oldest
    is answered with 503."""
    max_connections: int = 1000
    """Maximum number of connections. A new one replaces an idle one; if all are busy, everything
    but /health and /ready is answered with 503."""
    max_connections_per_address: int = 500
    """Maximum number of connections per client address. Raise it behind a proxy."""
    keep_alive_ms: int = 75_000
    """Close a connection without a request for this long."""
    max_stalled_ms: int = 30_000
    """Disconnect a client that stalls while sending a request or reading a response for this long."""

    def __post_init__(self) -> None:
        if self.cert_file is not None and not self.tls:
            raise ValueError("cert_file has no effect without tls = true")
        if self.client_certificates != "none" and not self.tls:
            raise ValueError("client_certificates has no effect without tls = true")
        if not -1 <= self.port <= 65535:
            raise ValueError(f"port must be between -1 and 65535, got {self.port}")
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for origin in self.cors_origins:
            if origin != "*" and "://" not in origin:
                raise ValueError(f"cors_origins must be origins such as https://app.example, got {origin!r}")
