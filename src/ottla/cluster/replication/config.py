"""What can be set about replication."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path  # noqa: TC003 - the type of a setting is looked up when it is read
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationConfig:
    replica_lag_time_max_ms: int = 30_000
    """A replica that has not caught up with its leader for this long is no longer in sync."""
    replica_fetch_wait_max_ms: int = 500
    """How long a leader keeps a follower's fetch when there is nothing new."""
    replica_fetch_max_bytes: int = 1 << 20
    """How much a follower asks for of one partition at a time."""
    replica_fetch_response_max_bytes: int = 10 << 20
    """How much a follower asks for at a time."""
    replica_fetch_backoff_ms: int = 200
    """How long a follower waits after something went wrong."""
    high_watermark_checkpoint_interval_ms: int = 5_000
    """How often it is noted how far partitions are committed."""
    tls: bool = False
    """Encrypt connections to other nodes. Nodes reach each other at the first listener of each."""
    tls_ca: Path | None = None
    """The authorities that other nodes' certificates must be of, in PEM; without it, those that the system trusts."""
    tls_cert: Path | None = None
    """The certificate that this node shows to others, in PEM."""
    tls_key: Path | None = None
    """The key of tls_cert, if it is not in the same file."""
    mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = ""
    """How this node logs in to others with SASL; empty for not at all."""
    username: str = ""
    """As whom it logs in. With ACLs, that user needs ClusterAction on the cluster, or is a super user."""
    password: str = ""
    """The password that belongs to it."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is int and value < 1:
                raise ValueError(f"{field.name} must be at least 1, got {value}")
        if bool(self.mechanism) != bool(self.username and self.password):
            raise ValueError("mechanism, username and password go together")
        if not self.tls and (self.tls_ca or self.tls_cert or self.tls_key):
            raise ValueError("tls_ca, tls_cert and tls_key need tls = true")
