"""TLS of DMQP shards. Certificates are reloaded when the files change, like those of listeners."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from ottla.net.security_config import SecurityConfig
    from ottla.net.tls import ServerTls


def shard_tls(
    security: SecurityConfig, host: str, cert_file: str, key_file: str = "", client_ca_file: str = ""
) -> ServerTls:
    """With a `client_ca_file` clients must have a certificate. Raises ConfigError if the files cannot be used."""
    from ottla.net.listener_config import ListenerConfig  # imported lazily
    from ottla.net.tls import ServerTls

    # The revocation lists are of the listeners' CAs: with other CAs every client would be rejected.
    is_same_authority = bool(client_ca_file) and Path(client_ca_file) == security.client_ca_file
    listener = ListenerConfig(
        protocol="SSL",
        host=host,
        port=0,
        cert_file=Path(cert_file),
        key_file=Path(key_file) if key_file else None,
        client_ca_file=Path(client_ca_file) if client_ca_file else None,
        client_certificates="required" if client_ca_file else "none",
        client_crl_file=security.client_crl_file if is_same_authority else None,
    )
    try:
        return ServerTls(listener, security)
    except ConfigError as unusable:
        raise ConfigError(f"dmqp.cert_file, key_file or client_ca_file: {unusable}") from None
