"""PLAIN (RFC 4616): user name and password, checked against the SCRAM verifiers."""

from __future__ import annotations

import hmac
import secrets
import threading
from typing import TYPE_CHECKING, Final

from ottla.core.security import LoginFailed
from ottla.net.sasl.exchange import LoggedIn
from ottla.net.sasl.scram import expires_s, knows_password

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.net.sasl.decoys import Decoys
    from ottla.net.sasl.exchange import FindVerifier, Step, Verifier

_MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
_MOST_REMEMBERED: Final = 1000
_MOST_BYTES: Final = 4096


class Passwords:
    """Checks passwords. Successful checks are cached while the verifier is unchanged.

    Verification is slow by design, and over HTTP every request would need it. The cache holds a keyed digest, with a
    random key of this process.
    """

    def __init__(self, find: FindVerifier, decoys: Decoys, now_ms: Callable[[], int]) -> None:
        self._find = find
        self._decoys = decoys
        self._now_ms = now_ms
        self._key = secrets.token_bytes(32)
        self._right: dict[str, tuple[bytes, bytes]] = {}
        self._lock = threading.Lock()

    def is_remembered(self, user: str, password: str) -> bool:
        found = self.fingerprint(user)
        remembered = self._right.get(user)
        if found is None or remembered is None or found != remembered[0]:
            return False
        return hmac.compare_digest(self._digest(user, password), remembered[1])

    def is_right(self, user: str, password: str) -> bool:
        """Whether the password is correct. Slow, regardless of the result and whether the user exists. An expired
        password may be correct.
        """
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
        """A value that changes with the user's password; None for an unknown user, or an expired password."""
        verifier = self._verifier(user)
        if verifier is None or (verifier.expires_ms is not None and verifier.expires_ms <= self._now_ms()):
            return None
        return verifier.stored_key

    def is_known(self, user: str) -> bool:
        return self._verifier(user) is not None

    def expires_s(self, user: str) -> float | None:
        """When the user's password expires; None for never."""
        verifier = self._verifier(user)
        return None if verifier is None else expires_s(verifier)

    def _verifier(self, user: str) -> Verifier | None:
        return next(filter(None, (self._find(user, mechanism) for mechanism in _MECHANISMS)), None)

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
        return LoggedIn(user, expires_s=self._passwords.expires_s(user))


def parse(message: bytes) -> tuple[str, str]:
    if len(message) > _MOST_BYTES:
        raise LoginFailed("PLAIN message too long")
    try:
        parts = message.decode().split("\0")
    except UnicodeDecodeError:
        raise LoginFailed("PLAIN message is not UTF-8") from None
    if len(parts) != 3:
        raise LoginFailed("malformed PLAIN message: user name or password missing")
    authorized, user, password = parts
    if not user or not password:
        raise LoginFailed("PLAIN message with an empty user name or password")
    if authorized not in ("", user):
        raise LoginFailed(f"user {user!r} cannot act on behalf of another")
    return user, password
