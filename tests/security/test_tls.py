"""TLS: trust, protocol versions, and certificate reload."""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509

import ottla
from ottla.client.errors import ClientError
from ottla.client.security import Security

from .certificates import Authority, Files
from .securing import secured

if TYPE_CHECKING:
    from pathlib import Path

    from .securing import Secured

QUICK: dict[str, Any] = {"request_timeout_ms": 3000, "metadata_refresh_retry_count": 1}
PATIENCE_S = 10


def handshake(address: str, context: ssl.SSLContext, name: str = "localhost") -> dict[str, Any]:
    """The certificate presented by the broker."""
    host, _, port = address.rpartition(":")
    plain = socket.create_connection((host, int(port)), PATIENCE_S)
    with plain, context.wrap_socket(plain, server_hostname=name) as tls:
        return dict(tls.getpeercert() or {})


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.cert))


def topics(address: str, security: Security) -> list[str]:
    with ottla.Admin(address, security=security, **QUICK) as admin:
        return list(admin.list_topics())


def test_a_client_that_trusts_another_authority_does_not_connect(broker: Secured, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    with pytest.raises(ClientError, match=r"(?i)certificate"):
        topics(broker.address("SSL"), Security(tls=True, ca_file=str(other.cert)))


def test_a_client_that_expects_another_host_does_not_connect(broker: Secured) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        handshake(broker.address("SSL"), trusting(broker.authority), "kafka.example")


def test_plaintext_on_a_tls_port_is_closed_and_counted(tmp_path: Path) -> None:
    # A separate broker: another may not have seen the end of an earlier test's handshake yet.
    with secured(tmp_path) as broker:
        [port] = [one for one in broker.embedded.broker.listener.ports if one.config.protocol == "SSL"]
        with socket.create_connection(tuple(port.address), PATIENCE_S) as client:
            client.sendall(b"\x00\x00\x00\x0e\x00\x12\x00\x00\x00\x00\x00\x01\x00\x04test")
            while client.recv(1000):
                pass
        assert port.tls is not None
        assert port.tls.failures == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_old_tls_versions_are_refused(broker: Secured, version: ssl.TLSVersion) -> None:
    context = trusting(broker.authority)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = version
    with pytest.raises(ssl.SSLError):
        handshake(broker.address("SSL"), context)


def test_tls_1_2_and_1_3_are_supported(broker: Secured) -> None:
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = trusting(broker.authority)
        context.maximum_version = context.minimum_version = version
        assert handshake(broker.address("SSL"), context)


def test_tls_1_3_can_be_required(tmp_path: Path) -> None:
    with secured(tmp_path, tls_min_version="TLSv1.3") as broker:
        context = trusting(broker.authority)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(ssl.SSLError):
            handshake(broker.address("SSL"), context)


def test_the_principal_of_a_certificate_follows_the_rules(broker: Secured) -> None:
    files = broker.authority.client("Carl")
    context = trusting(broker.authority)
    context.load_cert_chain(files.cert, files.key)
    host, _, port = broker.address("SSL").rpartition(":")
    plain = socket.create_connection((host, int(port)), PATIENCE_S)
    with plain, context.wrap_socket(plain, server_hostname="localhost") as tls:
        tls.sendall(b"\x00\x00\x00\x0e\x00\x12\x00\x00\x00\x00\x00\x01\x00\x04test")
        assert tls.recv(4)
        connections = list(broker.embedded.broker.listener.connections)
        assert "User:carl" in [one.principal for one in connections]


def test_a_certificate_of_another_authority_is_not_accepted(broker: Secured, tmp_path: Path) -> None:
    files = Authority(tmp_path, "other").client("carl")
    security = Security(
        tls=True, ca_file=str(broker.authority.cert), cert_file=str(files.cert), key_file=str(files.key)
    )
    with pytest.raises(ClientError):
        topics(broker.address("SSL"), security)


def test_a_required_client_certificate_is_enforced(tmp_path: Path) -> None:
    with secured(tmp_path, client_certificates="required", acls=True, super_users=("User:carl",)) as broker:
        trusted = {"tls": True, "ca_file": str(broker.authority.cert)}
        with pytest.raises(ClientError):
            topics(broker.address("SSL"), Security(**trusted))
        files = broker.authority.client("carl")
        own = Security(**trusted, cert_file=str(files.cert), key_file=str(files.key))
        with ottla.Admin(broker.address("SSL"), security=own, **QUICK) as admin:
            admin.create_topic("of-carl")


def until_shown(broker: Secured, authority: Authority, serial: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    shown = ""
    while shown != serial:
        assert time.monotonic() < deadline_s, f"still {shown}"
        try:
            shown = handshake(broker.address("SSL"), trusting(authority))["serialNumber"]
        except ssl.SSLCertVerificationError:
            shown = "of another authority"


def renewed(broker: Secured, other: Authority) -> str:
    """Replace the certificate; returns its serial number."""
    files = other.server()
    for mine, new in (("server.pem", files.cert), ("server.key", files.key)):
        target = broker.folder / mine
        if target != new:
            target.write_bytes(new.read_bytes())
    number = x509.load_pem_x509_certificate(files.cert.read_bytes()).serial_number
    text = f"{number:X}"
    return text if len(text) % 2 == 0 else f"0{text}"


def test_a_new_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    with (
        secured(tmp_path) as broker,
        ottla.Admin(
            broker.address("SSL"), security=Security(tls=True, ca_file=str(broker.authority.cert))
        ) as connected,
    ):
        connected.list_topics()
        until_shown(broker, broker.authority, renewed(broker, broker.authority))
        (tmp_path / "new").mkdir()
        other = Authority(tmp_path / "new", "other")
        until_shown(broker, other, renewed(broker, other))
        assert connected.list_topics() is not None  # existing connections stay open


def test_a_broken_certificate_file_changes_nothing(tmp_path: Path) -> None:
    with secured(tmp_path) as broker:
        [port] = [one for one in broker.embedded.broker.listener.ports if one.config.protocol == "SSL"]
        before = handshake(broker.address("SSL"), trusting(broker.authority))["serialNumber"]
        (tmp_path / "server.pem").write_text("not a certificate")
        assert port.tls is not None
        port.tls.reload_if_changed()
        assert handshake(broker.address("SSL"), trusting(broker.authority))["serialNumber"] == before


def by_certificate(broker: Secured, files: Files) -> Security:
    return Security(tls=True, ca_file=str(broker.authority.cert), cert_file=str(files.cert), key_file=str(files.key))


def test_a_principal_can_come_from_a_subject_alternative_name(tmp_path: Path) -> None:
    rules = ("RULE:spiffe:\\/\\/example\\/([^\\/]+)/$1/", "RULE:([^@]+)@example/$1/L")
    names = {
        "by-uri": [x509.UniformResourceIdentifier("spiffe://example/billing")],
        "by-email": [x509.DNSName("host.example"), x509.RFC822Name("Ann@example")],
        "by-host": [x509.DNSName("host.example")],
    }
    with secured(
        tmp_path,
        client_certificates="required",
        principal_sources=("uri", "email"),
        principal_rules=rules,
        acls=True,
        super_users=("User:billing", "User:ann"),
    ) as broker:
        files = {name: broker.authority.client("carl", file=name, alternative=given) for name, given in names.items()}
        for name in ("by-uri", "by-email"):
            with ottla.Admin(broker.address("SSL"), security=by_certificate(broker, files[name]), **QUICK) as admin:
                admin.create_topic(name)
        with pytest.raises(ClientError):
            topics(broker.address("SSL"), by_certificate(broker, files["by-host"]))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_revoked_certificate_is_refused(tmp_path: Path, version: ssl.TLSVersion) -> None:
    with secured(tmp_path, has_crl=True, client_certificates="required") as broker:
        revoked, valid = (broker.authority.client(user) for user in ("carl", "ann"))
        context = trusting(broker.authority)
        context.load_cert_chain(revoked.cert, revoked.key)
        context.minimum_version = context.maximum_version = version
        session = asked(broker, context)
        broker.authority.revoke(revoked)
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            assert time.monotonic() < deadline_s, "still accepted"
            try:
                topics(broker.address("SSL"), by_certificate(broker, revoked))
            except ClientError:
                break
        with pytest.raises((ssl.SSLError, ConnectionError)):  # TLS session resumption does not help
            asked(broker, context, session)
        assert topics(broker.address("SSL"), by_certificate(broker, valid)) == []


def asked(broker: Secured, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> ssl.SSLSession | None:
    """Send a request; returns the TLS session for resumption."""
    host, _, port = broker.address("SSL").rpartition(":")
    plain = socket.create_connection((host, int(port)), PATIENCE_S)
    with plain, context.wrap_socket(plain, server_hostname="localhost", session=session) as tls:
        tls.sendall(b"\x00\x00\x00\x0e\x00\x12\x00\x00\x00\x00\x00\x01\x00\x04test")
        if not tls.recv(4):
            raise ConnectionError("hung up on")
        return tls.session
