"""A broker with authentication."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ottla
from ottla.broker.config import BrokerConfig
from ottla.broker.security.users import add_user_offline
from ottla.broker.settings import Settings
from ottla.client.security import Security
from ottla.net.config import NetConfig
from ottla.net.security_config import SecurityConfig

from .certificates import Authority
from .tokens import AUDIENCE, ISSUER, Issuer

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PASSWORDS = {"admin": "admin-secret", "ann": "ann-secret", "bob": "bob-secret"}
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Secured:
    """A running broker with a listener of each protocol, and credentials for it."""

    def __init__(self, folder: Path, authority: Authority, issuer: Issuer, broker: ottla.Broker) -> None:
        self.folder = folder
        self.authority = authority
        self.issuer = issuer
        self.embedded = broker

    def address(self, protocol: str) -> str:
        ports = self.embedded.broker.listener.ports
        [port] = [one for one in ports if one.config.protocol == protocol]
        return f"localhost:{port.address.port}"

    def login(self, user: str = "admin", mechanism: Any = "SCRAM-SHA-512", *, tls: bool = True) -> Security:
        trust: dict[str, Any] = {"tls": True, "ca_file": str(self.authority.cert)} if tls else {}
        if mechanism == "OAUTHBEARER":
            return Security(mechanism=mechanism, token=lambda: self.issuer.token(user), **trust)
        return Security(mechanism=mechanism, username=user, password=PASSWORDS[user], **trust)

    def admin(self, user: str = "admin", **options: Any) -> ottla.Admin:
        return ottla.Admin(self.address("SASL_SSL"), security=self.login(user), **options)

    def audit(self) -> list[dict[str, Any]]:
        import json

        audit = self.embedded.broker.security.audit
        assert audit is not None
        audit.flush()
        path = Path(self.folder / "data" / "audit.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()]


@contextmanager
def secured(
    folder: Path, *, has_crl: bool = False, net: dict[str, Any] | None = None, **changes: Any
) -> Iterator[Secured]:
    authority = Authority(folder)
    if has_crl:
        changes["client_crl_file"] = authority.revoke()
    server = authority.server()
    issuer = Issuer(folder)
    given: dict[str, Any] = {
        "cert_file": server.cert,
        "key_file": server.key,
        "client_ca_file": authority.cert,
        "client_certificates": "requested",
        "principal_rules": ("RULE:CN=([^,]+),.*/$1/L", "DEFAULT"),
        "mechanisms": ALL_MECHANISMS,
        "failed_login_delay_ms": 1,
        "oauth_jwks": str(issuer.jwks),
        "oauth_issuer": ISSUER,
        "oauth_audience": AUDIENCE,
        **changes,
    }
    listeners = tuple(f"{protocol}://127.0.0.1:0" for protocol in PROTOCOLS)
    settings = Settings(
        broker=BrokerConfig(data_dir=folder / "data"),
        net=NetConfig(listeners=listeners, **(net or {})),
        security=SecurityConfig(**given),
    )
    for user, password in PASSWORDS.items():
        add_user_offline(settings, user, password, ("SCRAM-SHA-256", "SCRAM-SHA-512"))
    with ottla.Broker(folder / "data", settings) as broker:
        yield Secured(folder, authority, issuer, broker)
