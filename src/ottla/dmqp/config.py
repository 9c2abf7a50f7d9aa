"""Settings of DMQP."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

_AT_LEAST_ONE: Final = ("timeout_ms", "max_connections", "max_held_bytes", "lease_ms")


class DmqpConfig(Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    """The address that shards listen on. Anything but a loopback address allows connections from other machines."""
    advertised_host: str = ""
    """The advertised host of shards; by default the address of the shard, or the one that the client used."""
    timeout_ms: int = 30_000
    """Close a connection that has been idle, or stalled in a request or reply, for this long."""
    max_connections: int = 1000
    """Maximum number of connections to all shards."""
    max_held_bytes: int = 256 * 1024 * 1024
    """Memory limit for requests and unread replies, for all clients together."""
    lease_ms: int = 10_000
    """How long a consumer keeps its shards without requesting messages."""
    cert_file: str = ""
    """The certificate of the shards, in PEM; enables TLS."""
    key_file: str = ""
    """The key of cert_file, if it is not in the same file."""
    client_ca_file: str = ""
    """CA certificates, in PEM; clients must present a certificate of one of them."""

    authorize_clients: bool = False
    """Whether to enforce ACLs: the user is the one named in the client certificate."""

    def __post_init__(self) -> None:
        if self.authorize_clients and not self.client_ca_file:
            raise ValueError("authorize_clients needs a client_ca_file: clients are known by their certificates")
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("key_file", "client_ca_file"):
            if getattr(self, name) and not self.cert_file:
                raise ValueError(f"{name} needs a cert_file")
