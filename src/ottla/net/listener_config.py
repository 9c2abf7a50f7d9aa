"""Settings of one listener: `[[net.listeners]]` in the file, or the short form `SASL_SSL://host:port`."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - looked up when values are converted
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from ottla.core.config_values import convert
from ottla.core.hosts import is_loopback
from ottla.net.certificate_names import PrincipalSource  # noqa: TC001 - as above
from ottla.net.security_config import ClientCertificates, Mechanism  # noqa: TC001 - as above

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.net.security_config import SecurityConfig

Protocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_FROM_SECURITY: Final = (
    "cert_file",
    "key_file",
    "client_ca_file",
    "client_certificates",
    "mechanisms",
    "principal_rules",
    "principal_sources",
    "client_crl_file",
)


class ListenerConfig(Struct, frozen=True, kw_only=True):
    protocol: Protocol = "PLAINTEXT"
    host: str = "127.0.0.1"
    port: int = 9092
    advertised: str = ""
    cert_file: Path | None = None
    key_file: Path | None = None
    client_ca_file: Path | None = None
    client_certificates: ClientCertificates | None = None
    mechanisms: tuple[Mechanism, ...] | None = None
    principal_rules: tuple[str, ...] | None = None
    principal_sources: tuple[PrincipalSource, ...] | None = None
    client_crl_file: Path | None = None

    @property
    def uses_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol.startswith("SASL")

    @property
    def authenticates(self) -> bool:
        """Whether all clients of this listener are authenticated."""
        return self.uses_sasl or (self.uses_tls and self.client_certificates == "required")

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol}://{host}:{self.port}"

    def completed(self, security: SecurityConfig) -> ListenerConfig:
        """The listener's settings, with defaults from the settings of all listeners."""
        if not self.uses_tls and self.client_certificates not in (None, "none"):
            raise ValueError(f"listener {self} cannot use client_certificates without TLS")
        given = {name: getattr(security, name) for name in _FROM_SECURITY if getattr(self, name) in (None, ())}
        if not self.uses_tls:
            given["client_certificates"] = "none"
        if self.cert_file is not None:
            # A key belongs to its certificate.
            given.pop("key_file", None)
        complete = replace(self, **given)
        complete.check()
        return complete

    def check(self) -> None:
        if self.uses_tls and self.cert_file is None:
            raise ValueError(f"listener {self} needs a cert_file")
        if self.uses_tls and self.client_certificates != "none" and self.client_ca_file is None:
            raise ValueError(f"listener {self} uses client_certificates and needs a client_ca_file")
        if self.client_crl_file is not None and self.client_ca_file is None:
            raise ValueError(f"listener {self}: client_crl_file has no effect without a client_ca_file")
        if self.uses_sasl and not self.mechanisms:
            raise ValueError(f"listener {self} needs mechanisms")


def parse_listeners(given: Iterable[str | Mapping[str, Any]]) -> tuple[ListenerConfig, ...]:
    listeners = tuple(_short(one) if isinstance(one, str) else _table(one) for one in given)
    taken: set[tuple[str, int]] = set()
    for listener in listeners:
        if listener.port and (listener.host, listener.port) in taken:
            raise ValueError(f"listeners has {listener.host}:{listener.port} twice")
        taken.add((listener.host, listener.port))
    return listeners


def _short(text: str) -> ListenerConfig:
    protocol, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not (separator and colon and port.isascii() and port.isdigit()):
        raise ValueError(f"listeners must be such as SASL_SSL://127.0.0.1:9093, got {text!r}")
    return _table({"protocol": protocol, "host": host.strip("[]") or "0.0.0.0", "port": int(port)})  # noqa: S104


def _table(given: Mapping[str, Any]) -> ListenerConfig:
    known = ListenerConfig.__struct_fields__
    types = get_type_hints(ListenerConfig)
    values = {}
    for key, value in given.items():
        if key not in known:
            raise ValueError(f"listeners: unknown setting {key!r}; valid are {', '.join(known)}")
        try:
            values[key] = convert(key, types[key], value, is_text=False)
        except ValueError as wrong:
            raise ValueError(f"listeners: {key}: {wrong}") from None
    if "protocol" not in values:
        raise ValueError(f"listeners: each needs a protocol: {', '.join(_PROTOCOLS)}")
    listener = ListenerConfig(**values)  # type: ignore[arg-type]  # each was converted to its field's type
    if not 0 <= listener.port <= 65535:
        raise ValueError(f"listeners: port must be between 0 and 65535, got {listener.port}")
    return listener
