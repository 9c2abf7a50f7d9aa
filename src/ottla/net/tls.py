"""TLS on a listener: certificates and trusted CAs. Changed files are reloaded."""

from __future__ import annotations

import logging
import ssl
from typing import TYPE_CHECKING, Any, Final

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ottla.net.listener_config import ListenerConfig
    from ottla.net.security_config import SecurityConfig

_logger: Final = logging.getLogger(__name__)

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class ServerTls:
    """The certificates of one port.

    The event loop keeps `context` permanently. It switches each handshake to the newest one, which is built from
    scratch: CAs that were removed from the file are no longer trusted.
    """

    def __init__(self, config: ListenerConfig, security: SecurityConfig) -> None:
        self._config = config
        self._security = security
        self._stamps = self._stamp()
        self._newest = self._load()
        self.failures = 0
        """The number of failed handshakes."""
        self.context = self._load()
        self.context.sni_callback = self._hand_on
        self.context.sslobject_class = _session_class(self._failed)

    def reload_if_changed(self) -> None:
        """Reload changed files. Invalid files are reported once, and the last valid ones stay in use."""
        stamps = self._stamp()
        if stamps == self._stamps:
            return
        self._stamps = stamps
        try:
            self._newest = self._load()
        except ConfigError as unusable:
            _logger.error(
                "listener %s: could not reload certificates, keeping the old ones: %s", self._config, unusable
            )
        else:
            _logger.warning("listener %s: reloaded certificates", self._config)

    def _hand_on(self, tls: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        tls.context = self._newest

    def _failed(self, reason: ssl.SSLError) -> None:
        self.failures += 1
        if self.failures == 1 or self.failures % 1000 == 0:
            why = reason.reason or str(reason)
            _logger.warning("%d failed TLS handshakes on %s; last: %s", self.failures, self._config, why)

    def _files(self) -> list[Path]:
        config = self._config
        named = (config.cert_file, config.key_file, config.client_ca_file, config.client_crl_file)
        return [file for file in named if file is not None]

    def _stamp(self) -> list[tuple[int, int, int] | None]:
        stamps: list[tuple[int, int, int] | None] = []
        for file in self._files():
            try:
                found = file.stat()
            except OSError:
                stamps.append(None)
            else:
                stamps.append((found.st_mtime_ns, found.st_size, found.st_ino))
        return stamps

    def _load(self) -> ssl.SSLContext:
        config = self._config
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = _VERSIONS[self._security.tls_min_version]
        # Renegotiation costs the server far more than the client.
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.verify_mode = _VERIFY[config.client_certificates or "none"]
        if context.verify_mode is not ssl.CERT_NONE:
            # A resumed session shows no certificate, so a revoked certificate would still be accepted.
            context.options |= ssl.OP_NO_TICKET
            context.num_tickets = 0
        password = self._security.key_password or None
        try:
            # Never prompt on a terminal for a key's passphrase.
            context.load_cert_chain(config.cert_file or "", config.key_file, lambda: password or "")
            if config.client_ca_file is not None:
                context.load_verify_locations(config.client_ca_file)
            if config.client_crl_file is not None:
                context.load_verify_locations(config.client_crl_file)
                context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        except (OSError, ValueError) as unusable:
            named = " and ".join(map(str, self._files()))
            raise ConfigError(f"listener {config}: {named} cannot be used: {unusable}") from None
        return context


def _session_class(failed: Callable[[ssl.SSLError], None]) -> type[ssl.SSLObject]:
    """A TLS session class that reports failed handshakes, which the event loop drops silently."""

    class Session(ssl.SSLObject):
        _sslobj: ssl.SSLObject

        @property
        def read(self) -> Callable[..., Any]:
            """Called by ssl.SSLObject.read. A read returns one TLS record, and some clients send one per message."""
            return self._sslobj.read

        def do_handshake(self, *arguments: Any) -> None:
            try:
                super().do_handshake(*arguments)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise
            except ssl.SSLError as reason:
                failed(reason)
                raise

    return Session
