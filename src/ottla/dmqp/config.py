"""Settings of DMQP."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

_AT_LEAST_ONE: Final = ("timeout_ms", "max_connections", "max_held_bytes", "lease_ms")


class DmqpConfig(Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    """The address that exposed shards listen on. Anything but a loopback address lets other machines in."""
    advertised_host: str = ""
    """The host that clients connect to. By default the address of the shard, or the one that the client used."""
    timeout_ms: int = 30_000
    """Close a connection on which nothing, or too little, has come or gone for this long."""
    max_connections: int = 1000
    """How many clients may be connected to all shards at once."""
    max_held_bytes: int = 256 * 1024 * 1024
    """How much may be held in memory of requests and of unread replies, for all clients together."""
    lease_ms: int = 10_000
    """How long a consumer keeps its shards without asking for messages."""
    cert_file: str = ""
    """Serve TLS, with this certificate, in PEM."""
    key_file: str = ""
    """The key of cert_file, if it is not in the same file."""
    client_ca_file: str = ""
    """Let in only clients that show a certificate of this authority, in PEM."""

    authorize_clients: bool = False
    """Whether a client may push and pop only what the ACLs allow the user whom its certificate names."""

    def __post_init__(self) -> None:
        if self.authorize_clients and not self.client_ca_file:
            raise ValueError("authorize_clients needs a client_ca_file: clients are known by their certificates")
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("key_file", "client_ca_file"):
            if getattr(self, name) and not self.cert_file:
                raise ValueError(f"{name} needs a cert_file")
