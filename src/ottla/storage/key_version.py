"""Selects the encryption key of a log: the partition's own key of the configured version, or the folder's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import StorageError
from ottla.storage.files import storage_errors
from ottla.storage.folder.own_keys import FIRST_OWN_KEY_ID

if TYPE_CHECKING:
    from ottla.storage.partition_log import PartitionLog


def use_key_version(log: PartitionLog) -> None:
    """Encrypt with the configured key, which is created if necessary."""
    version, cipher = log.config.encryption_key_version, log.cipher
    if cipher is None:
        if version:
            raise StorageError(f"{log.folder.name} has encryption.key.version, but encryption is off")
        return
    with storage_errors(f"the keys of {log.folder.name}"):
        own_keys = cipher.find_own_keys(log.folder, must_exist=not version)
        if own_keys is None or log.is_offline:
            return
        active = log.segments.active
        # A segment has keys of one kind, so that its first batch shows whether it must be re-encrypted.
        if active.size and (active.oldest_key_id >= FIRST_OWN_KEY_ID) != bool(version):
            log.roll()
        key_id = FIRST_OWN_KEY_ID + version
        if not own_keys.has(version) and any(each.oldest_key_id == key_id for each in log.segments):
            # A new key of this version would replace one that may be restored from a backup.
            raise StorageError(f"{log.folder.name}: own-keys.json lacks key {version}, which data needs")
        own_keys.use(version)


def refresh_own_keys(log: PartitionLog) -> None:
    """Re-encrypt the keys of this partition with the folder's newest key."""
    if log.cipher is not None and log.cipher.own_keys is not None:
        with storage_errors(f"the keys of {log.folder.name}"):
            log.cipher.own_keys.refresh()
