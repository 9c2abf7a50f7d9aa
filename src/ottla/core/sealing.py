"""Authenticated encryption: AES-256-GCM.

4   key id
16   session id
8   counter within the session
the ciphertext
16   tag

A nonce must never be used twice with one key. So the ring's keys are not used directly: each writer
draws a random session id of 16 bytes, derives a key from it (HKDF-SHA256), and counts. No state has to be
kept between starts, and no number of messages makes a repetition likely, unlike random nonces.
"""

from __future__ import annotations

import os
from itertools import count
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError, OttlaError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from ottla.core.keys import KeyRing

SEAL_BYTES: Final = 44
"""The overhead of encryption."""
_KEY_ID_BYTES: Final = 4
_SESSION_END: Final = 20
_NUMBER_END: Final = 28
_NONCE_START: Final = bytes(4)
_SEALED_PER_SESSION: Final = 1 << 32
_KNOWN_SESSIONS: Final = 1024
"""The number of cached derived keys; usually one per start."""
_CHECK_BYTES: Final = 16


class BrokenSeal(OttlaError):
    """The data was modified or moved, or encrypted with another key."""


class UnknownKey(BrokenSeal):
    """The data was encrypted with a key that is not in the ring."""


class Sealer:
    """Encrypts with the newest key of a ring, decrypts with any. Thread-safe."""

    def __init__(self, ring: KeyRing) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise ConfigError("encryption needs the package cryptography: pip install 'ottla[security]'") from None
        self._aead = AESGCM
        self._invalid = InvalidTag
        self._opening: dict[bytes, AESGCM] = {}
        self.use(ring)

    def use(self, ring: KeyRing, newest: int | None = None) -> None:
        """Replace the ring, and encrypt with its newest key, or with the given one."""
        self.ring = ring
        self.newest = ring.newest if newest is None else newest
        self._begin_session()

    def _begin_session(self) -> None:
        name = self.newest.to_bytes(_KEY_ID_BYTES, "big") + os.urandom(_SESSION_END - _KEY_ID_BYTES)
        # One tuple, so that no thread combines a counter of one session with the key of another.
        self._session = name, self._derived(name), count()

    def seal(self, data: bytes | bytearray | memoryview, bound_to: bytes) -> bytes:
        """Encrypt data. It can be decrypted only with the same `bound_to`, which identifies its location."""
        sealed = bytearray(len(data) + SEAL_BYTES)
        self.seal_into(memoryview(sealed), data, bound_to)
        return bytes(sealed)

    def seal_into(self, target: memoryview, data: bytes | bytearray | memoryview, bound_to: bytes) -> None:
        """Like `seal`, into a given buffer of exactly the right size."""
        name, aead, numbers = self._session
        number = next(numbers)
        if number >= _SEALED_PER_SESSION:
            self._begin_session()
            self.seal_into(target, data, bound_to)
            return
        nonce = number.to_bytes(8, "big")
        target[:_NUMBER_END] = name + nonce
        aead.encrypt_into(_NONCE_START + nonce, data, bound_to, target[_NUMBER_END:])

    def open(self, sealed: bytes | memoryview, bound_to: bytes) -> bytes:
        if len(sealed) < SEAL_BYTES:
            raise BrokenSeal("too short for encrypted data")
        opened = bytearray(len(sealed) - SEAL_BYTES)
        self.open_into(memoryview(opened), memoryview(sealed), bound_to)
        return bytes(opened)

    def open_into(self, target: memoryview, sealed: memoryview, bound_to: bytes) -> None:
        name = bytes(sealed[:_SESSION_END])
        aead = self._opening.get(name)
        if aead is None:
            aead = self._remembered(name)
        nonce = _NONCE_START + sealed[_SESSION_END:_NUMBER_END]
        try:
            aead.decrypt_into(nonce, sealed[_NUMBER_END:], bound_to, target)
        except self._invalid:
            raise BrokenSeal("it was modified or moved, or encrypted with another key") from None

    def _remembered(self, name: bytes) -> AESGCM:
        aead = self._derived(name)
        if len(self._opening) >= _KNOWN_SESSIONS:
            self._opening = {}
        self._opening[name] = aead
        return aead

    def _derived(self, name: bytes) -> AESGCM:
        key_id = key_id_of(name)
        key = self.ring.keys.get(key_id)
        if key is None:
            raise UnknownKey(f"encrypted with key {key_id}, which is missing from the given keys")
        return self._aead(_derive(key, name[_KEY_ID_BYTES:], b"ottla seal", 32))


def key_id_of(sealed: bytes | memoryview) -> int:
    return int.from_bytes(sealed[:_KEY_ID_BYTES], "big")


def check_value(key: bytes) -> str:
    """A value that identifies a key without revealing it."""
    return _derive(key, b"", b"ottla check value", _CHECK_BYTES).hex()


def is_check_value(key: bytes, value: str) -> bool:
    import hmac

    return hmac.compare_digest(check_value(key).encode(), value.encode())


def signature(key: bytes, text: bytes) -> str:
    import hmac

    return hmac.new(_derive(key, b"", b"ottla signature", 32), text, "sha256").hexdigest()


def catalog_key(key: bytes) -> bytes:
    """The key that the catalog of a folder is sealed with."""
    return _derive(key, b"", b"ottla catalog", 64)


def is_signature(key: bytes, text: bytes, value: str) -> bool:
    import hmac

    return hmac.compare_digest(signature(key, text).encode(), value.encode())


def _derive(key: bytes, salt: bytes, purpose: bytes, size: int) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), size, salt, purpose).derive(key)
