"""The client side of SASL exchanges: bytes in, bytes out.

PLAIN is RFC 4616, SCRAM is RFC 5802 with the hashes of RFC 7677, OAUTHBEARER is RFC 7628. Like Kafka's
clients, SCRAM uses names and passwords as UTF-8 bytes: Kafka does not normalize them with SASLprep.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from typing import TYPE_CHECKING, Final, Protocol

from ottla.client.errors import AuthenticationFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.security import Security

_NO_CHANNEL_BINDING: Final = "n,,"
_NONCE_BYTES: Final = 24
_FEWEST_ITERATIONS: Final = 4096
"""The minimum of RFC 7677; accepting fewer would make offline guessing of the password cheap."""
_MOST_ITERATIONS: Final = 1_000_000
"""A server that requires more would exhaust our CPU."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")


class Exchange(Protocol):
    """One authentication."""

    def begin(self) -> bytes:
        """The first message."""

    def answer(self, challenge: bytes) -> bytes | None:
        """The next message; None if the exchange is complete.

        Raises AuthenticationFailed if the broker cannot be trusted.
        """


def exchange_for(security: Security) -> Exchange:
    match security.mechanism:
        case "PLAIN":
            return Plain(security.username or "", security.password or "")
        case "SCRAM-SHA-256" | "SCRAM-SHA-512" as mechanism:
            extensions = ",tokenauth=true" if security.is_delegation_token else ""
            return Scram(mechanism, security.username or "", security.password or "", extensions=extensions)
        case "OAUTHBEARER" if security.token is not None:
            return OAuthBearer(_get(security.token))
    raise ValueError(f"no exchange for {security}")


def _get(token: Callable[[], str]) -> str:
    try:
        return token()
    except Exception as failed:  # any error of the user's function
        raise AuthenticationFailed(f"could not get an OAUTHBEARER token: {failed!r}") from failed


class Plain:
    def __init__(self, username: str, password: str) -> None:
        if "\0" in username or "\0" in password:
            raise AuthenticationFailed("a username or password for PLAIN must not contain a null character")
        self._message = f"\0{username}\0{password}".encode()

    def begin(self) -> bytes:
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:  # noqa: ARG002 - nothing that it could say matters
        return None


class OAuthBearer:
    def __init__(self, token: str) -> None:
        if not _TOKEN.fullmatch(token):
            raise AuthenticationFailed("the OAUTHBEARER token is empty or has invalid characters (RFC 6750)")
        self._message = f"{_NO_CHANNEL_BINDING}\x01auth=Bearer {token}\x01\x01".encode()

    def begin(self) -> bytes:
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        # An error is a document, and must be acknowledged before the broker ends the exchange.
        return b"\x01" if challenge else None


class Scram:
    def __init__(
        self, mechanism: str, username: str, password: str, nonce: str | None = None, extensions: str = ""
    ) -> None:
        self._hash = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        self._password = password.encode()
        self._nonce = nonce or base64.b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()
        escaped = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={escaped},r={self._nonce}{extensions}"
        self._proven: bytes | None = None  # the key that the broker must sign with
        self._is_complete = False

    def begin(self) -> bytes:
        return (_NO_CHANNEL_BINDING + self._first_bare).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        if self._is_complete:
            return None
        if self._proven is None:
            return self._prove(challenge)
        self._check_signature(challenge)
        self._is_complete = True
        return None

    def _prove(self, challenge: bytes) -> bytes:
        fields = _fields(challenge)
        nonce, salt, iterations = _value(fields, "r"), _decoded(_value(fields, "s")), _value(fields, "i")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise _distrusted("its nonce does not start with ours")
        if not (iterations.isascii() and iterations.isdigit()):
            raise _distrusted(f"it asks for {iterations!r} iterations")
        if not _FEWEST_ITERATIONS <= int(iterations) <= _MOST_ITERATIONS:
            allowed = f"{_FEWEST_ITERATIONS} to {_MOST_ITERATIONS}"
            raise _distrusted(f"it asks for {iterations} iterations, {allowed} are allowed")
        binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
        final_bare = f"c={binding},r={nonce}"
        signed = f"{self._first_bare},{challenge.decode()},{final_bare}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, int(iterations))
        client_key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._proven = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{final_bare},p={base64.b64encode(proof).decode()}".encode()

    def _check_signature(self, challenge: bytes) -> None:
        fields = _fields(challenge)
        if "e" in fields:
            raise AuthenticationFailed(f"the broker rejected the login: {fields['e']}")
        if not hmac.compare_digest(_decoded(_value(fields, "v")), self._proven or b""):
            raise _distrusted("it does not know the password")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _fields(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError:
        raise _distrusted("its response is not text") from None
    return {name: value for name, _, value in (part.partition("=") for part in parts)}


def _value(fields: dict[str, str], name: str) -> str:
    if "m" in fields:
        raise _distrusted("it requires an unknown extension")
    if name not in fields:
        raise _distrusted(f"its response has no {name!r}")
    return fields[name]


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _distrusted(f"{text!r} is not base64") from None


def _distrusted(why: str) -> AuthenticationFailed:
    return AuthenticationFailed(f"the broker's SCRAM response is invalid: {why}")
