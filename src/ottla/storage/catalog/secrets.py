"""Secrets in the catalog: encrypted if the data folder is encrypted.

Encrypted values have a marker. Values from before encryption was enabled have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.sealing import BrokenSeal, key_id_of

if TYPE_CHECKING:
    from ottla.core.keys import KeyRing
    from ottla.core.sealing import Sealer

_MARK: Final = b"ottla sealed 1\0"


class Secrets:
    def __init__(self, sealer: Sealer | None) -> None:
        self._sealer = sealer

    @property
    def ring(self) -> KeyRing | None:
        return None if self._sealer is None else self._sealer.ring

    def seal(self, secret: bytes, place: bytes) -> bytes:
        """The stored form of a secret at this place of the catalog."""
        return secret if self._sealer is None else _MARK + self._sealer.seal(secret, place)

    def open(self, kept: bytes, place: bytes) -> bytes:
        if not kept.startswith(_MARK):
            return kept
        if self._sealer is None:
            raise BrokenSeal("it is encrypted, but no keys are configured")
        return self._sealer.open(kept[len(_MARK) :], place)

    def is_outdated(self, kept: bytes) -> bool:
        """Whether this secret must be encrypted, or re-encrypted with a newer key."""
        if self._sealer is None:
            return False
        return not kept.startswith(_MARK) or key_id_of(kept[len(_MARK) :]) != self._sealer.ring.newest
