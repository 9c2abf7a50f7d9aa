"""How this node connects to others of its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.client.config import ClientConfig
from ottla.client.opening import Manner
from ottla.client.security import Security

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.cluster.replication.config import ReplicationConfig

_SCRATCH_BYTES: Final = 256 << 10
_PATIENCE_MS: Final = 10_000
"""A leader that is silent for so much longer than it may is gone."""


class Connecting:
    """Certificates are read once, and for all connections."""

    def __init__(self, config: ReplicationConfig, node_id: int) -> None:
        self._security = _security(config)
        self._tls = None if self._security is None else self._security.tls_context()
        self._wait_ms = config.replica_fetch_wait_max_ms
        self._node_id = node_id

    def manner_to(self, leader: int) -> Manner:
        config = ClientConfig(
            client_id=f"broker-{self._node_id}-fetcher-{leader}",
            request_timeout_ms=self._wait_ms + _PATIENCE_MS,
            connect_timeout_ms=_PATIENCE_MS,
            security=self._security,
        )
        return Manner(config, self._tls, bytearray(_SCRATCH_BYTES))


def _security(config: ReplicationConfig) -> Security | None:
    if not config.tls and not config.mechanism:
        return None
    return Security(
        tls=config.tls,
        ca_file=_path(config.tls_ca),
        cert_file=_path(config.tls_cert),
        key_file=_path(config.tls_key),
        mechanism=config.mechanism or None,
        username=config.username or None,
        password=config.password or None,
    )


def _path(path: Path | None) -> str | None:
    return None if path is None else str(path)
