"""TLS and credentials between nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.security import Security

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.cluster.config import ClusterConfig


def node_security(config: ClusterConfig) -> Security | None:
    """The security of connections between nodes; None without TLS and SASL."""
    uses_tls = config.node_tls_ca is not None
    if not uses_tls and not config.node_user:
        return None
    return Security(
        tls=uses_tls,
        ca_file=_text(config.node_tls_ca),
        cert_file=_text(config.node_tls_cert),
        key_file=_text(config.node_tls_key),
        mechanism=config.node_mechanism if config.node_user else None,
        username=config.node_user or None,
        password=config.node_password or None,
    )


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
