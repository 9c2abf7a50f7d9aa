"""A development CA that signs one broker and one client certificate."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_AUTHORITY: Final = "Ottla development authority"


class DevelopmentCa:
    """Generates keys and writes them readable by their owner only."""

    def __init__(self, folder: Path, days: int) -> None:
        self._folder = folder
        self._days = days
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(_AUTHORITY)
        extensions: list[x509.ExtensionType] = [x509.BasicConstraints(ca=True, path_length=0), _signs_certificates()]
        self._write("ca", self._key, self._sign(self._name, self._key.public_key(), extensions))

    def issue_server(self, hosts: Sequence[str]) -> None:
        """For these names and addresses."""
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        self._issue("server", hosts[0], [names, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])])

    def issue_client(self, user: str) -> None:
        self._issue("client", user, [x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])])

    def _issue(self, file: str, name: str, extensions: list[x509.ExtensionType]) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        extensions = [x509.BasicConstraints(ca=False, path_length=None), *extensions]
        self._write(file, key, self._sign(_named(name), key.public_key(), extensions))

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, extensions: list[x509.ExtensionType]
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        authority = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            # A clock that is a little behind must not refuse it.
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=self._days))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority), critical=False)
        )
        for extension in extensions:
            is_critical = isinstance(extension, (x509.BasicConstraints, x509.KeyUsage))
            builder = builder.add_extension(extension, critical=is_critical)
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        write_private(self._folder / f"{name}.key", secret)
        (self._folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def write_private(path: Path, content: bytes) -> None:
    """A new file that only its owner can read."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _signs_certificates() -> x509.KeyUsage:
    return x509.KeyUsage(
        key_cert_sign=True,
        crl_sign=True,
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
