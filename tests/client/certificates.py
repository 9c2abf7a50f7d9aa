"""Certificates for one test run, created by openssl: a CA, a broker and a client."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of PEM files; a certificate's key is in the same folder, under the same name with `.key`."""

    authority: Path
    broker: Path
    client: Path

    def key_of(self, certificate: Path) -> Path:
        return certificate.with_suffix(".key")

    def server_context(self, *, wants_client: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.authority))
        context.load_cert_chain(self.broker, self.key_of(self.broker))
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def make_certificates(folder: Path) -> Certificates:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    authority = folder / "authority.pem"
    _openssl(
        "req", "-x509", "-subj", "/CN=authority", "-keyout", str(authority.with_suffix(".key")), "-out", str(authority)
    )
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    return Certificates(
        authority, _issue(authority, "broker", names), _issue(authority, "client", "subjectAltName=DNS:client")
    )


def _issue(authority: Path, name: str, names: str) -> Path:
    certificate = authority.parent / f"{name}.pem"
    signed_by = ("-CA", str(authority), "-CAkey", str(authority.with_suffix(".key")))
    _openssl(
        "req", "-x509", "-subj", f"/CN={name}", "-addext", names, "-addext", "basicConstraints=critical,CA:FALSE",
        *signed_by, "-keyout", str(certificate.with_suffix(".key")), "-out", str(certificate),
    )  # fmt: skip
    return certificate


def _openssl(command: str, *arguments: str) -> None:
    subprocess.run(["openssl", command, *_NEW_KEY, *arguments], check=True, capture_output=True)
