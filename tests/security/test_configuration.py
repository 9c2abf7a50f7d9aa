"""Security settings: contradictions are refused, likely mistakes logged, secrets hidden."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import ottla
from ottla.broker.config import BrokerConfig
from ottla.broker.security import checks
from ottla.broker.settings import Settings
from ottla.cli.main import program
from ottla.core.errors import ConfigError
from ottla.net.certificate_names import PrincipalRules, distinguished_name
from ottla.net.config import NetConfig
from ottla.net.listener_config import parse_listeners
from ottla.net.security_config import SecurityConfig

from .securing import PASSWORDS, secured

if TYPE_CHECKING:
    from collections.abc import Sequence


# Listeners


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("kafka://x:1", "expected one of PLAINTEXT"),
        ("SSL:9092", "must be such as"),
        ("SSL://host", "must be such as"),
        ({"host": "x"}, "each needs a protocol"),
        ({"protocol": "SSL", "prot": 1}, "unknown setting 'prot'"),
        ({"protocol": "SSL", "port": "9092"}, "port: expected a whole number"),
        ({"protocol": "SSL", "port": 99999}, "between 0 and 65535"),
        ({"protocol": "SASL_SSL", "mechanisms": ["GSSAPI"]}, "mechanisms: expected a list"),
    ],
)
def test_an_invalid_listener_is_refused(given: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_listeners([given])


def test_two_listeners_do_not_share_a_port() -> None:
    with pytest.raises(ValueError, match="twice"):
        parse_listeners(["SSL://h:1", "PLAINTEXT://h:1"])


def test_host_and_port_are_set_in_one_place() -> None:
    for other in ({"host": "0.0.0.0"}, {"port": 1}, {"advertised": "x:1"}):  # noqa: S104
        with pytest.raises(ValueError, match="mutually exclusive"):
            NetConfig(listeners=("PLAINTEXT://127.0.0.1:0",), **other)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("listener", "why"),
    [
        ({"protocol": "SSL"}, "needs a cert_file"),
        ({"protocol": "PLAINTEXT", "client_certificates": "required"}, "without TLS"),
        ({"protocol": "SSL", "cert_file": "c", "client_certificates": "required"}, "needs a client_ca_file"),
    ],
)
def test_an_incomplete_listener_is_refused(listener: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        NetConfig(listeners=(listener,)).all_listeners(SecurityConfig())


def test_a_listener_inherits_unset_values_from_security() -> None:
    security = SecurityConfig(cert_file=Path("c"), key_file=Path("k"), mechanisms=("PLAIN",))
    own = {"protocol": "SASL_SSL", "port": 2, "cert_file": "own"}
    [first, second] = NetConfig(listeners=("SASL_SSL://h:1", own)).all_listeners(security)
    assert (first.cert_file, first.key_file, first.mechanisms) == (Path("c"), Path("k"), ("PLAIN",))
    assert (second.cert_file, second.key_file) == (Path("own"), None)


# Security


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"super_users": ("admin",), "acls": True}, "such as User:admin"),
        ({"super_users": ("User:admin",)}, "no effect without acls"),
        ({"allow_everyone_if_no_acl": True}, "no effect without acls"),
        ({"mechanisms": ("OAUTHBEARER",)}, "needs oauth_jwks"),
        ({"oauth_jwks": "keys.json"}, "needs oauth_issuer and oauth_audience"),
        ({"oauth_jwks": "http://x", "oauth_issuer": "i", "oauth_audience": "a"}, "https"),
        ({"session_max_ms": -1}, "at least 0"),
        ({"principal_rules": ("RULE:(/x/",)}, "is invalid"),
        ({"principal_rules": ("CN=x",)}, "must be DEFAULT or RULE"),
    ],
)
def test_invalid_settings_are_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        SecurityConfig(**given)


def warned(*listeners: str, has_users: bool = True, **given: Any) -> list[str]:
    security = SecurityConfig(cert_file=Path("c"), **given)
    return checks.warnings(NetConfig(listeners=listeners).all_listeners(security), security, has_users=has_users)


def has(warnings: Sequence[str], text: str) -> bool:
    return any(text in one for one in warnings)


def test_likely_mistakes_are_logged() -> None:
    assert has(warned("PLAINTEXT://0.0.0.0:1"), "without authentication")
    assert has(warned("SSL://0.0.0.0:1"), "without authentication")
    assert has(warned("SASL_PLAINTEXT://0.0.0.0:1"), "not encrypted")
    assert has(warned("SASL_PLAINTEXT://127.0.0.1:1", mechanisms=("PLAIN",)), "accepts passwords with PLAIN")
    assert has(warned("SASL_SSL://127.0.0.1:1"), "security.acls is false")
    assert has(warned("SASL_SSL://127.0.0.1:1", has_users=False), "there is no user yet")
    assert has(warned("SASL_SSL://127.0.0.1:1", acls=True), "without security.super_users")
    admin = {"acls": True, "super_users": ("User:admin",)}
    assert has(warned("SASL_SSL://127.0.0.1:1", allow_everyone_if_no_acl=True, **admin), "open to all clients")
    assert has(warned("SASL_SSL://127.0.0.1:1", "PLAINTEXT://127.0.0.1:2", **admin), "User:ANONYMOUS")


def test_common_settings_log_no_warning() -> None:
    assert checks.warnings(NetConfig().all_listeners(SecurityConfig()), SecurityConfig(), has_users=False) == []
    assert warned("SASL_SSL://0.0.0.0:1", acls=True, super_users=("User:admin",)) == []


def test_acls_require_authentication(tmp_path: Path) -> None:
    settings = Settings(broker=BrokerConfig(data_dir=tmp_path), security=SecurityConfig(acls=True))
    with pytest.raises(ConfigError, match="no listener authenticates its clients"), ottla.Broker(tmp_path, settings):
        pass


def test_a_broker_without_usable_credentials_does_not_start(tmp_path: Path) -> None:
    net = NetConfig(listeners=("SASL_PLAINTEXT://127.0.0.1:0",))
    with pytest.raises(ConfigError, match="ottla user add"), ottla.Broker(tmp_path, Settings(net=net)):
        pass


def test_an_unreadable_certificate_is_an_error_at_start(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("nothing")
    net = NetConfig(listeners=("SSL://127.0.0.1:0",))
    settings = Settings(net=net, security=SecurityConfig(cert_file=tmp_path / "cert.pem"))
    with pytest.raises(ConfigError, match=r"cert\.pem cannot be used"), ottla.Broker(tmp_path / "data", settings):
        pass


# Certificates' names


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ([[("organizationName", "example")], [("commonName", "ann")]], "CN=ann,O=example"),
        ([[("commonName", "a,b+c")]], r"CN=a\,b\+c"),
        ([[("commonName", " #x ")]], r"CN=\ #x\ "),
        ([[("commonName", "a"), ("userId", "b")]], "CN=a+UID=b"),
        ([], ""),
    ],
)
def test_the_name_of_a_certificate(subject: Any, name: str) -> None:
    assert distinguished_name(subject) == name


def test_principal_mapping_rules() -> None:
    rules = PrincipalRules(["RULE:^CN=(.*?),OU=(\\w+),.*$/$1@$2/U", r"RULE:CN=([^,]+)\/x/$1/L", "RULE:.*CN=Z.*/z/"])
    assert rules.user_of("CN=ann,OU=sales,O=x") == "ANN@SALES"
    assert rules.user_of("CN=ANN/x") == "ann"
    assert rules.user_of("O=x,CN=Z") == "z"
    assert rules.user_of("CN=bob") is None
    assert PrincipalRules(["DEFAULT"]).user_of("CN=bob,O=x") == "CN=bob,O=x"


# Secrets


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "ottla.toml"
    file.write_text('[security]\nkey_password = "hunter2"\nacls = true\nsuper_users = ["User:admin"]\n')
    for output in ("table", "json"):
        shown = CliRunner().invoke(program, ["config", "show", "--config", str(file), "-o", output])
        assert shown.exit_code == 0
        assert "hunter2" not in shown.output
        assert "User:admin" in shown.output


def test_secrets_are_not_in_errors(tmp_path: Path) -> None:
    file = tmp_path / "ottla.toml"
    file.write_text('[security]\nkey_password = "hunter2"\nsession_max_ms = -1\n')
    shown = CliRunner().invoke(program, ["config", "show", "--config", str(file)])
    assert shown.exit_code == 2
    assert "hunter2" not in shown.output


def test_secrets_are_not_in_logs_nor_in_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    token = ""
    with caplog.at_level(logging.DEBUG), secured(tmp_path, acls=True, super_users=("User:admin",)) as broker:
        token = broker.issuer.token("ann")
        with broker.admin() as admin:
            admin.set_password("new", "brand-new-secret")
            admin.list_users()
        for mechanism in ("PLAIN", "OAUTHBEARER", "SCRAM-SHA-256"):
            with ottla.Admin(broker.address("SASL_SSL"), security=broker.login("ann", mechanism)) as admin:
                admin.list_topics()
        written = json.dumps(broker.audit())
    everything = [path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()]
    for secret in (*PASSWORDS.values(), "brand-new-secret", token):
        assert secret not in caplog.text
        assert secret not in written
        assert not any(secret.encode() in content for content in everything)


def test_audit_log_and_catalog_are_readable_by_the_owner_only(tmp_path: Path) -> None:
    with secured(tmp_path) as broker:
        for name in ("audit.jsonl", "catalog.sqlite"):
            assert (broker.folder / "data" / name).stat().st_mode & 0o077 == 0
