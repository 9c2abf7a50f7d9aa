"""SCRAM (RFC 5802, with the hashes of RFC 7677), and its verifiers.

As in Kafka, names and passwords are UTF-8 bytes, without SASLprep.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.core.security import LoginFailed
from ottla.net.sasl.exchange import Challenge, LoggedIn

if TYPE_CHECKING:
    from ottla.net.sasl.decoys import Decoys
    from ottla.net.sasl.exchange import FindToken, FindVerifier, FoundToken, Step, Verifier

DEFAULT_ITERATIONS: Final = 4096
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
"""Kafka's bounds: more iterations would overload brokers, fewer are too weak."""
SALT_BYTES: Final = 24
_NONCE_BYTES: Final = 24
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

_FIRST: Final = re.compile(
    r"([nyp])(?:=[^,]*)?,(?:a=([^,]+))?,(n=([^,]+),r=([!-+\--~]+))((?:,[A-Za-z]+=[^,]+)*)", re.DOTALL
)
_FINAL: Final = re.compile(r"(c=([^,]+),r=([!-+\--~]+)(?:,[A-Za-z]=[^,]+)*?),p=([^,]+)", re.DOTALL)
_TOKEN_AUTH: Final = "tokenauth=true"  # noqa: S105 - not a password
"""The extension of Kafka's clients that log in with a delegation token."""
_ESCAPE: Final = re.compile(r"=(2C|3D)?")


@dataclass(frozen=True, slots=True)
class MadeVerifier:
    salt: bytes = field(repr=False)
    iterations: int
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    expires_ms: int | None = None


def make_verifier(mechanism: str, password: str, iterations: int = DEFAULT_ITERATIONS) -> MadeVerifier:
    salt = secrets.token_bytes(SALT_BYTES)
    return verifier_of(mechanism, salt, iterations, salted(mechanism, password, salt, iterations))


def salted(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode("utf-8", "surrogatepass"), salt, iterations)


def verifier_of(mechanism: str, salt: bytes, iterations: int, salted_password: bytes) -> MadeVerifier:
    kind = _HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", kind)
    server_key = hmac.digest(salted_password, b"Server Key", kind)
    return MadeVerifier(salt, iterations, hashlib.new(kind, client_key).digest(), server_key)


def knows_password(mechanism: str, verifier: Verifier, password: str) -> bool:
    made = verifier_of(
        mechanism,
        verifier.salt,
        verifier.iterations,
        salted(mechanism, password, verifier.salt, verifier.iterations),
    )
    return hmac.compare_digest(made.stored_key, verifier.stored_key)


def expires_s(verifier: Verifier) -> float | None:
    return None if verifier.expires_ms is None else verifier.expires_ms / 1000


def digest_size(mechanism: str) -> int:
    return hashlib.new(_HASHES[mechanism]).digest_size


class Scram:
    is_slow: Final = False

    def __init__(
        self,
        mechanism: str,
        find: FindVerifier,
        decoys: Decoys,
        nonce: str | None = None,
        find_token: FindToken | None = None,
    ) -> None:
        self._mechanism = mechanism
        self._hash = _HASHES[mechanism]
        self._find = find
        self._decoys = decoys
        self._find_token = find_token
        self._nonce = nonce or base64.b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()
        self._begun: _Begun | None = None

    def take(self, message: bytes) -> Step:
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise LoginFailed("SCRAM message is not UTF-8") from None
        return self._first(text) if self._begun is None else self._last(text, self._begun)

    def _first(self, text: str) -> Challenge:
        found = _FIRST.fullmatch(text)
        if found is None:
            raise LoginFailed("malformed SCRAM message")
        binding, authorized, bare, name, nonce, extensions = found.groups()
        if binding == "p":
            raise LoginFailed("channel binding is not supported")
        user = _unescaped(name)
        if authorized is not None and _unescaped(authorized) != user:
            raise LoginFailed(f"user {user!r} cannot act on behalf of another")
        token = None
        if _TOKEN_AUTH in extensions.split(","):
            if self._find_token is None:
                raise LoginFailed("delegation tokens are not enabled: security.delegation_token_secret is not set")
            token = self._find_token(user, self._mechanism)
            verifier = None if token is None else token.verifier
        else:
            verifier = self._find(user, self._mechanism)
        is_known = verifier is not None
        verifier = verifier or self._decoys.verifier(self._mechanism, user)
        salt = base64.b64encode(verifier.salt).decode()
        challenge = f"r={nonce}{self._nonce},s={salt},i={verifier.iterations}"
        header = text[: -len(bare + extensions)]
        exchanged = f"{bare}{extensions},{challenge}"
        self._begun = _Begun(user, is_known, verifier, header, exchanged, nonce + self._nonce, token)
        return Challenge(challenge.encode())

    def _last(self, text: str, begun: _Begun) -> LoggedIn:
        found = _FINAL.fullmatch(text)
        if found is None:
            raise LoginFailed("malformed final SCRAM message")
        bare, binding, nonce, proof = found.groups()
        if _decoded(binding) != begun.header.encode() or nonce != begun.nonce:
            raise LoginFailed(f"user {begun.user!r} sent a final SCRAM message that does not match the exchange")
        signed = f"{begun.exchanged},{bare}".encode()
        verifier = begun.verifier
        signature = hmac.digest(verifier.stored_key, signed, self._hash)
        client_key = bytes(a ^ b for a, b in zip(_decoded(proof), signature, strict=False))
        is_right = hmac.compare_digest(hashlib.new(self._hash, client_key).digest(), verifier.stored_key)
        if not is_right or not begun.is_known:
            raise LoginFailed(f"wrong password for user {begun.user!r}")
        answer = b"v=" + base64.b64encode(hmac.digest(verifier.server_key, signed, self._hash))
        if begun.token is None:
            return LoggedIn(begun.user, answer, expires_s(verifier))
        return LoggedIn(begun.token.owner, answer, begun.token.expires_s, token_id=begun.token.token_id)


@dataclass(frozen=True, slots=True)
class _Begun:
    user: str
    is_known: bool
    verifier: Verifier
    header: str
    exchanged: str
    nonce: str
    token: FoundToken | None


def _unescaped(name: str) -> str:
    def replace(found: re.Match[str]) -> str:
        if found[1] is None:
            raise LoginFailed("unescaped = in a user name")
        return "," if found[1] == "2C" else "="

    return _ESCAPE.sub(replace, name)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise LoginFailed("invalid base64 in a SCRAM message") from None
