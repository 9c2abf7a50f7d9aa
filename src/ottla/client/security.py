"""TLS and SASL settings."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    tls: bool | ssl.SSLContext = False
    """Use TLS; an ssl.SSLContext overrides the other TLS options."""
    ca_file: str | None = None
    """Trusted CA certificates, in PEM; None for the system's."""
    cert_file: str | None = None
    """The client certificate, in PEM, for mutual TLS."""
    key_file: str | None = None
    """The key of cert_file, if it is not in the same file."""
    key_password: str | None = field(default=None, repr=False)
    """The passphrase of key_file."""
    check_hostname: bool = True
    """Whether the broker's certificate must match the host name."""
    mechanism: Mechanism | None = None
    """The SASL mechanism; None for no authentication."""
    username: str | None = None
    """For PLAIN and SCRAM."""
    password: str | None = field(default=None, repr=False)
    """For PLAIN and SCRAM."""
    is_delegation_token: bool = False
    """With SCRAM: username and password are the id and the secret of a delegation token."""
    token: Callable[[], str] | None = None
    """Returns the OAUTHBEARER token for a connection; called in a thread, so it may block."""

    def __post_init__(self) -> None:
        self._check_tls()
        self._check_sasl()

    def tls_context(self) -> ssl.SSLContext | None:
        """The TLS context; None for plaintext. Reads files, so it is slow."""
        if isinstance(self.tls, ssl.SSLContext):
            return self.tls
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as unusable:
            raise ConfigError(f"ca_file {self.ca_file!r} cannot be used: {unusable}") from None
        context.check_hostname = self.check_hostname
        if self.cert_file is not None:
            try:
                context.load_cert_chain(self.cert_file, self.key_file, self.key_password)
            except (OSError, ssl.SSLError) as unusable:
                files = f"cert_file {self.cert_file!r} with key_file {self.key_file!r}"
                raise ConfigError(f"{files} cannot be used: {unusable}") from None
        return context

    def _check_tls(self) -> None:
        named = [
            name for name in ("ca_file", "cert_file", "key_file", "key_password") if getattr(self, name) is not None
        ]
        if named and self.tls is not True:
            raise ConfigError(f"{named[0]} needs tls=True")
        if self.key_file is not None and self.cert_file is None:
            raise ConfigError("key_file needs a cert_file")
        if not self.check_hostname and self.tls is not True:
            raise ConfigError("check_hostname=False needs tls=True")

    def _check_sasl(self) -> None:
        if self.mechanism is not None and self.mechanism not in _MECHANISMS:
            raise ConfigError(f"mechanism must be one of {', '.join(_MECHANISMS)}, got {self.mechanism!r}")
        if self.is_delegation_token and self.mechanism not in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            raise ConfigError("is_delegation_token needs mechanism SCRAM-SHA-256 or SCRAM-SHA-512")
        has_password = self.username is not None or self.password is not None
        if self.mechanism == "OAUTHBEARER":
            if self.token is None or has_password:
                raise ConfigError("mechanism OAUTHBEARER needs a token, and no username or password")
        elif self.token is not None:
            raise ConfigError("token needs mechanism OAUTHBEARER")
        elif self.mechanism is None and has_password:
            raise ConfigError("username and password need a mechanism, such as SCRAM-SHA-512")
        elif self.mechanism is not None and not (self.username and self.password):
            raise ConfigError(f"mechanism {self.mechanism} needs a username and a password")
