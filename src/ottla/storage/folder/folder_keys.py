"""`encryption.json`: the keys that a data folder needs, so that a wrong or missing key is detected at the start.

The file has a check value of each key, which does not reveal the key, and is signed with the newest key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ottla.core.errors import DataDirError
from ottla.core.sealing import check_value, is_check_value, is_signature, signature
from ottla.storage.files import ENCRYPTED_LOG, replace_file
from ottla.storage.folder.meta_properties import META_PROPERTIES

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.core.keys import KeyRing

FILE: Final = "encryption.json"
_VERSION: Final = 1


class FolderKeys:
    """The contents of the file. A new key is recorded before its first use."""

    def __init__(
        self, folder: Path, noted: frozenset[int], *, allows_plain: bool, has_sealed_catalog: bool = False
    ) -> None:
        self.noted = noted
        """The keys that data in the folder may be encrypted with."""
        self.allows_plain = allows_plain
        """Whether unencrypted data is allowed."""
        self.has_sealed_catalog = has_sealed_catalog
        """Whether the catalog is sealed. If so, an unsealed catalog is foreign."""
        self._path = folder / FILE

    def is_settled(self, below: int) -> bool:
        """Whether no data of older keys, nor unencrypted data, is left."""
        return not below or (not self.allows_plain and min(self.noted) >= below)

    def note(self, ring: KeyRing) -> None:
        """Record the newest key before its first use."""
        if ring.newest not in self.noted:
            self._write(ring, self.noted | {ring.newest}, allows_plain=self.allows_plain)

    def settle(self, ring: KeyRing, below: int) -> None:
        """Record that no data of older keys, nor unencrypted data, is left."""
        self._write(ring, frozenset(key for key in self.noted if key >= below), allows_plain=False)

    def note_sealed_catalog(self, ring: KeyRing) -> None:
        """Record that the catalog is sealed from now on."""
        if not self.has_sealed_catalog:
            self.has_sealed_catalog = True
            self._write(ring, self.noted, allows_plain=self.allows_plain)

    def _write(self, ring: KeyRing, noted: frozenset[int], *, allows_plain: bool) -> None:
        checks = {str(key_id): check_value(ring.keys[key_id]) for key_id in sorted(noted)}
        content: dict[str, object] = {"version": _VERSION, "keys": checks, "plain": allows_plain}
        if self.has_sealed_catalog:
            content["catalog"] = True
        signed = {**content, "signature": signature(ring.keys[max(noted)], _to_sign(content))}
        replace_file(self._path, msgspec.json.format(msgspec.json.encode(signed), indent=1) + b"\n")
        self.noted, self.allows_plain = noted, allows_plain


def check_keys(folder: Path, ring: KeyRing | None) -> FolderKeys | None:
    """The verified key information of a folder; raises DataDirError otherwise. Changes nothing."""
    path = folder / FILE
    if not path.exists():
        if ring is None:
            # If there are encrypted segments nevertheless, opening their partitions fails.
            return None
        if _has_encrypted_segments(folder):
            raise DataDirError(f"{folder} is encrypted, but {FILE} is missing")
        return FolderKeys(folder, frozenset(), allows_plain=(folder / META_PROPERTIES).exists())
    if ring is None:
        raise DataDirError(
            f"{folder} is encrypted, but no keys are configured: set encryption.key_file, key_variable or key_command"
        )
    return _checked(path, ring)


def _checked(path: Path, ring: KeyRing) -> FolderKeys:
    try:
        content = msgspec.json.decode(path.read_bytes())
        signed = content.pop("signature")
        checks = {int(key_id): str(value) for key_id, value in content["keys"].items()}
        version, allows_plain, newest = content["version"], bool(content["plain"]), max(checks)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as wrong:
        raise DataDirError(f"{path} cannot be read: {wrong}") from None
    if version != _VERSION:
        raise DataDirError(f"{path} has version {version}; this release supports version {_VERSION}")
    for key_id, value in checks.items():
        if key_id not in ring.keys:
            raise DataDirError(
                f"{path.parent} is encrypted with key {key_id}, which is missing from the configured keys"
            )
        if not is_check_value(ring.keys[key_id], value):
            raise DataDirError(f"{path.parent} is encrypted with a different key {key_id}")
    if not is_signature(ring.keys[newest], _to_sign(content), str(signed)):
        raise DataDirError(f"{path} was modified without the keys")
    return FolderKeys(
        path.parent,
        frozenset(checks),
        allows_plain=allows_plain,
        has_sealed_catalog=content.get("catalog") is True,
    )


def _to_sign(content: dict[str, object]) -> bytes:
    import json  # not needed without encryption

    return json.dumps(content, sort_keys=True).encode()


def _has_encrypted_segments(folder: Path) -> bool:
    return any(folder.glob(f"*/*{ENCRYPTED_LOG}"))
