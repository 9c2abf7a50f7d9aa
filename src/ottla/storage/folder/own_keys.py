"""`own-keys.json` in a partition's folder: keys of this partition alone, for topics with encryption.key.version.

They are encrypted with the folder's newest key, which a key management service may have wrapped. Rotating that key
re-encrypts them, but not the data. They are deleted with the partition.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final

from ottla.core.errors import DataDirError
from ottla.core.keys import KEY_BYTES, KeyRing
from ottla.core.sealing import BrokenSeal, Sealer, key_id_of
from ottla.storage.files import replace_file

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.storage.cipher import BatchOwner

FILE: Final = "own-keys.json"
FIRST_OWN_KEY_ID: Final = 1 << 31
"""The first key id of partitions' own keys."""
HIGHEST_VERSION: Final = FIRST_OWN_KEY_ID - 1
_FORMAT: Final = 1


def is_own_key_id(key_id: int) -> bool:
    return key_id >= FIRST_OWN_KEY_ID


class OwnKeys:
    """The keys of one partition by version, and a sealer that uses them besides the folder's keys."""

    def __init__(self, folder: Path, of_folder: Sealer, owner: BatchOwner) -> None:
        self._path = folder / FILE
        self._of_folder = of_folder
        self._bound_to = b"own key " + owner.topic_id.raw + owner.partition.to_bytes(4, "big")
        self.version = 0
        self._wrapped_by = 0
        self._keys = self._read()
        self.sealer = Sealer(self._ring())

    def has(self, version: int) -> bool:
        return version in self._keys

    def use(self, version: int) -> None:
        """Encrypt with the key of this version from now on, created if necessary; 0 for the folder's keys."""
        if version and not self.has(version):
            self._write({**self._keys, version: os.urandom(KEY_BYTES)})
        self.version = version
        self.refresh()

    def refresh(self) -> None:
        """Re-encrypt these keys with the folder's newest key, after the folder's keys may have changed."""
        own = FIRST_OWN_KEY_ID + self.version if self.version else None
        self.sealer.use(self._ring(), newest=own or self._of_folder.ring.newest)
        if self._keys and self._wrapped_by != self._of_folder.ring.newest:
            self._write(self._keys)

    def _ring(self) -> KeyRing:
        own = {FIRST_OWN_KEY_ID + version: key for version, key in self._keys.items()}
        return KeyRing({**self._of_folder.ring.keys, **own})

    def _read(self) -> dict[int, bytes]:
        try:
            content = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as wrong:
            raise DataDirError(f"{self._path} cannot be read: {wrong}") from None
        try:
            if content["format"] != _FORMAT:
                raise DataDirError(f"{self._path} has format {content['format']}; this release supports {_FORMAT}")
            wrapped = {int(version): bytes.fromhex(text) for version, text in content["keys"].items()}
            keys = {version: self._of_folder.open(each, self._place(version)) for version, each in wrapped.items()}
            self._wrapped_by = min(map(key_id_of, wrapped.values()), default=0)
        except (KeyError, TypeError, ValueError, AttributeError) as wrong:
            raise DataDirError(f"{self._path} cannot be read: {wrong}") from None
        except BrokenSeal as broken:
            raise DataDirError(f"{self._path} cannot be decrypted: {broken}") from None
        return keys

    def _write(self, keys: dict[int, bytes]) -> None:
        wrapped = {str(version): self._of_folder.seal(key, self._place(version)).hex() for version, key in keys.items()}
        newest = self._of_folder.ring.newest
        replace_file(self._path, json.dumps({"format": _FORMAT, "keys": wrapped}, indent=1).encode() + b"\n")
        self._keys, self._wrapped_by = keys, newest

    def _place(self, version: int) -> bytes:
        return self._bound_to + version.to_bytes(4, "big")
