"""Tokens as an identity provider would sign them."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

if TYPE_CHECKING:
    from pathlib import Path

ISSUER = "https://issuer.example"
AUDIENCE = "ottla"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Issuer:
    def __init__(self, folder: Path, kid: str = "one") -> None:
        self._kid = kid
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.jwks = folder / "jwks.json"
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA",
            "kid": kid,
            "use": "sig",
            "n": encoded(numbers.n.to_bytes(256)),
            "e": encoded(numbers.e.to_bytes(3)),
        }
        self.jwks.write_text(json.dumps({"keys": [key]}))

    def claims(self, user: str = "ann", **changes: Any) -> dict[str, Any]:
        now = time.time()
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": user, "iat": now, "exp": now + 3600} | changes
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, user: str = "ann", *, head: dict[str, Any] | None = None, **changes: Any) -> str:
        """A change to None omits a claim."""
        header = {"alg": "RS256", "kid": self._kid, "typ": "JWT"} | (head or {})
        signed = ".".join(encoded(json.dumps(part).encode()) for part in (header, self.claims(user, **changes)))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{encoded(signature)}"
