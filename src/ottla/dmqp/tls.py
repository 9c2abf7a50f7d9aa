"""TLS of shards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from ottla.dmqp.config import DmqpConfig
    from ottla.net.security_config import SecurityConfig
    from ottla.net.tls import ServerTls


def server_tls(config: DmqpConfig, security: SecurityConfig) -> ServerTls | None:
    """The certificates of all shards, which are reloaded when they change."""
    if not config.cert_file:
        return None
    from ottla.net.listener_config import ListenerConfig
    from ottla.net.tls import ServerTls  # imported lazily

    is_same_authority = bool(config.client_ca_file) and Path(config.client_ca_file) == security.client_ca_file
    listener = ListenerConfig(
        protocol="SSL",
        host=config.host,
        port=0,
        cert_file=Path(config.cert_file),
        key_file=Path(config.key_file) if config.key_file else None,
        client_ca_file=Path(config.client_ca_file) if config.client_ca_file else None,
        client_certificates="required" if config.client_ca_file else "none",
        # The lists are of those authorities: with others every client would be refused.
        client_crl_file=security.client_crl_file if is_same_authority else None,
    )
    try:
        return ServerTls(listener, security)
    except ConfigError as unusable:
        raise ConfigError(f"dmqp.cert_file, key_file or client_ca_file: {unusable}") from None
