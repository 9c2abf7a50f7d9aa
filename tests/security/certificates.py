"""A test CA and its certificates; nothing here is secret or long-lived."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Files:
    cert: Path
    key: Path


class Authority:
    """Signs certificates and stores them next to its own."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._cert = self._sign(self._name, self._key, [x509.BasicConstraints(ca=True, path_length=0)])
        self.cert = folder / f"{name}.pem"
        self.cert.write_bytes(self._cert.public_bytes(serialization.Encoding.PEM))

    def server(self, host: str = "localhost", *, file: str = "server") -> Files:
        names = x509.SubjectAlternativeName([x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        if host != "localhost":
            names = x509.SubjectAlternativeName([x509.DNSName(host)])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        return self._issue(file, subject, [names, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])])

    def client(self, user: str, *, file: str = "", alternative: Sequence[x509.GeneralName] = ()) -> Files:
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, "example"),
                x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "sales"),
                x509.NameAttribute(NameOID.COMMON_NAME, user),
            ]
        )
        extensions: list[x509.ExtensionType] = [x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])]
        if alternative:
            extensions.append(x509.SubjectAlternativeName(alternative))
        return self._issue(file or user, subject, extensions)

    def revoke(self, *files: Files) -> Path:
        """A list of revoked certificates: these."""
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self._name)
            .last_update(now - dt.timedelta(hours=1))
            .next_update(now + dt.timedelta(days=1))
        )
        for each in files:
            serial = x509.load_pem_x509_certificate(each.cert.read_bytes()).serial_number
            revoked = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
            builder = builder.add_revoked_certificate(revoked)
        path = self._folder / "revoked.pem"
        fresh = path.with_suffix(".new")
        fresh.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        return fresh.replace(path)

    def _issue(self, file: str, subject: x509.Name, extensions: list[x509.ExtensionType]) -> Files:
        key = ec.generate_private_key(ec.SECP256R1())
        cert = self._sign(subject, key, [x509.BasicConstraints(ca=False, path_length=None), *extensions])
        files = Files(self._folder / f"{file}.pem", self._folder / f"{file}.key")
        files.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        files.cert.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
        return files

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extensions: list[x509.ExtensionType]
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=1))
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())
