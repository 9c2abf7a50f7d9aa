"""What can be set about HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - looked up when values are converted
from typing import Final, Literal

_AT_LEAST_ONE: Final = (
    "max_body_bytes",
    "max_held_bytes",
    "max_connections",
    "max_connections_per_address",
    "keep_alive_ms",
    "max_stalled_ms",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    port: int = 8080
    """The port for REST, metrics and health checks; 0 picks a free one, -1 serves none."""
    host: str = ""
    """The address to listen on; empty for net.host."""
    tls: bool = False
    """Whether to speak HTTPS, with cert_file or that of all listeners (security.cert_file)."""
    cert_file: Path | None = None
    """The certificate of this port, in PEM, if it is another; read again when it changes."""
    key_file: Path | None = None
    """The key of cert_file, if it is not in the same file."""
    client_certificates: Literal["none", "requested", "required"] = "none"
    """Whether clients have to show a certificate of security.client_ca_file; it logs in the user whom it names."""
    cors_origins: tuple[str, ...] = ()
    """The web sites, such as "https://app.example", whose pages may use the REST API, and proxies; "*" lets all."""
    allowed_hosts: tuple[str, ...] = ()
    """The names, such as "kafka.example", under which this port is reached, where no login is required. IP addresses,
    this machine's own name and names without a dot need not be listed; "*" allows every name."""
    max_body_bytes: int = 2 * 1024 * 1024
    """The largest request body, and the longest line of a streamed one; a larger one is answered with 413."""
    max_held_bytes: int = 128 * 1024 * 1024
    """How much may be held of request bodies that are being received, for all clients together. Beyond, the oldest
    is answered with 503."""
    max_connections: int = 1000
    """How many connections are served at once. A new one takes the place of an idle one; if there is none, everything
    but /health and /ready is answered with 503."""
    max_connections_per_address: int = 500
    """How many of them may come from one address. Raise it if clients come through a proxy."""
    keep_alive_ms: int = 75_000
    """Close a connection on which no request has come for this long."""
    max_stalled_ms: int = 30_000
    """Give up on a client that does not go on with the request it began, or does not read its answer, for this long."""

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
