"""PLAIN (RFC 4616): a name and a password, checked against the same verifiers as SCRAM."""

from __future__ import annotations

import hmac
import secrets
import threading
from typing import TYPE_CHECKING, Final

from ottla.core.security import LoginFailed
from ottla.net.sasl.exchange import LoggedIn
from ottla.net.sasl.scram import knows_password

if TYPE_CHECKING:
    from ottla.net.sasl.decoys import Decoys
    from ottla.net.sasl.exchange import FindVerifier, Step

_MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
_MOST_REMEMBERED: Final = 1000
_MOST_BYTES: Final = 4096


class Passwords:
    """Whether a password is right. What was found right is remembered, as long as the verifier stays the same.

    A verifier makes work on purpose, which over HTTP would be made again with every request. What is kept is a
    keyed digest, under a key that this process drew.
    """

    def __init__(self, find: FindVerifier, decoys: Decoys) -> None:
        self._find = find
        self._decoys = decoys
        self._key = secrets.token_bytes(32)
        self._right: dict[str, tuple[bytes, bytes]] = {}
        self._lock = threading.Lock()

    def is_remembered(self, user: str, password: str) -> bool:
        found = self._stored_key(user)
        remembered = self._right.get(user)
        if found is None or remembered is None or found != remembered[0]:
            return False
        return hmac.compare_digest(self._digest(user, password), remembered[1])

    def is_right(self, user: str, password: str) -> bool:
        """Slow, whether it is right or not and whether there is such a user or not."""
        for mechanism in _MECHANISMS:
            verifier = self._find(user, mechanism)
            if verifier is not None:
                if not knows_password(mechanism, verifier, password):
                    return False
                self._remember(user, verifier.stored_key, password)
                return True
        knows_password(*self._decoys.for_password(user, _MECHANISMS), password)
        return False

    def fingerprint(self, user: str) -> bytes | None:
        """What changes with the password of a user; None if there is no such user."""
        return self._stored_key(user)

    def _stored_key(self, user: str) -> bytes | None:
        for mechanism in _MECHANISMS:
            verifier = self._find(user, mechanism)
            if verifier is not None:
                return verifier.stored_key
        return None

    def _remember(self, user: str, stored_key: bytes, password: str) -> None:
        with self._lock:
            if len(self._right) >= _MOST_REMEMBERED:
                self._right.clear()
            self._right[user] = stored_key, self._digest(user, password)

    def _digest(self, user: str, password: str) -> bytes:
        text = f"{len(user)} {user}{password}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, text, "sha256")


class Plain:
    is_slow: Final = True

    def __init__(self, passwords: Passwords) -> None:
        self._passwords = passwords

    def take(self, message: bytes) -> Step:
        user, password = parse(message)
        if not self._passwords.is_right(user, password):
            raise LoginFailed(f"wrong password for user {user!r}")
        return LoggedIn(user)


def parse(message: bytes) -> tuple[str, str]:
    if len(message) > _MOST_BYTES:
        raise LoginFailed("a PLAIN message that is too long")
    try:
        parts = message.decode().split("\0")
    except UnicodeDecodeError:
        raise LoginFailed("a PLAIN message that is not UTF-8") from None
    if len(parts) != 3:
        raise LoginFailed("a PLAIN message without a name and a password")
    authorized, user, password = parts
    if not user or not password:
        raise LoginFailed("a PLAIN message with an empty name or password")
    if authorized not in ("", user):
        raise LoginFailed(f"user {user!r} cannot act for another")
    return user, password
