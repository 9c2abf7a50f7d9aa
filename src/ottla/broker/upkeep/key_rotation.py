"""Key rotation in a running broker: loads new keys, and re-encrypts segments.

The key file has the desired state and the data folder the actual one: a broker that is killed continues after its next
start.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError, DataDirError, OttlaError
from ottla.core.keys import load_keys
from ottla.core.sealing import Sealer
from ottla.kms.wrapping import Unwrapper
from ottla.storage.files import storage_errors
from ottla.storage.key_version import refresh_own_keys
from ottla.storage.rewrites.rewriting import put_in_place, rewrites_due

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.core.keys import EncryptionConfig, KeyRing

_logger: Final = logging.getLogger(__name__)


def open_sealer(config: EncryptionConfig, data_dir: Path) -> Sealer | None:
    """The sealer with the configured keys, if any."""
    if config.key_file is not None and config.key_file.expanduser().resolve().is_relative_to(data_dir.resolve()):
        raise ConfigError(f"encryption.key_file: {config.key_file} must not be in the data folder that it protects")
    ring = load_keys(config, Unwrapper(config))
    return None if ring is None else Sealer(ring)


class KeyRotation:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._config = broker.settings.encryption
        self._data_dir = broker.data_dir
        self._seen = self._state_of_file()
        self._complaint = ""

    @property
    def interval_ms(self) -> int:
        return self._config.key_check_interval_ms

    async def check(self) -> None:
        """Load a new key, if there is one, and re-encrypt segments as configured."""
        sealer, keys = self._data_dir.sealer, self._data_dir.keys
        if sealer is None or keys is None:
            return
        state = self._state_of_file()
        if state != self._seen:
            self._seen = state
            await self._take_up(sealer)
        if not keys.is_settled(sealer.ring.rewrite_below):
            await self._rewrite(sealer.ring)

    def _state_of_file(self) -> tuple[int, int, int] | None:
        if self._config.key_file is None:
            return None
        try:
            found = self._config.key_file.expanduser().stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    async def _take_up(self, sealer: Sealer) -> None:
        """Load the new keys as at a start, except that unusable keys change nothing."""
        try:
            # In a thread: it may call a key management service.
            ring = await asyncio.get_running_loop().run_in_executor(
                None, load_keys, self._config, Unwrapper(self._config)
            )
            if ring is None:
                return
            self._data_dir.use_keys(ring)
        except (ConfigError, DataDirError) as refused:
            self._seen = None  # the key management service may be unavailable
            if self._complaint != str(refused):  # logged once, not with every attempt
                self._complaint = str(refused)
                _logger.error("could not load the changed keys, the old ones stay in use: %s", refused)
            return
        self._complaint = ""
        self._broker.catalog.reseal()
        _logger.warning("new data is encrypted with key %d", sealer.ring.newest)

    async def _rewrite(self, ring: KeyRing) -> None:
        failures = 0
        topics = self._broker.topics
        for partition in list(topics.partitions_here()):
            async with self._broker.rewriting:
                try:
                    # The topic may have been deleted: opening the log would re-create the folder.
                    if topics.has(partition):
                        failures += await self._rewrite_partition(partition, ring.rewrite_below)
                except OttlaError as failed:
                    failures += 1
                    _logger.error("%s: could not re-encrypt: %s", partition.at, failed)
        if failures:
            _logger.error("%d segments or partitions still have to be re-encrypted", failures)
        elif self._data_dir.sealer is not None and self._data_dir.sealer.ring is ring:
            self._data_dir.settle_keys(ring.rewrite_below)
            _logger.warning("all data is encrypted with key %d or a newer one", ring.rewrite_below)

    async def _rewrite_partition(self, partition: Partition, below: int) -> int:
        """Re-encrypt a partition's segments. Returns the number of failed segments."""
        loop, log = asyncio.get_running_loop(), partition.log
        failures = 0
        refresh_own_keys(log)
        with storage_errors(log.folder.name):
            due = rewrites_due(log, below)
        for rewrite in due:
            await loop.run_in_executor(None, rewrite.run)
            is_gone = rewrite.segments[0] not in log.segments
            is_in_place = put_in_place(log, rewrite)
            if not self._broker.topics.has(partition):
                break
            if not is_in_place and not is_gone:
                failures += 1
                _logger.error("%s: could not re-encrypt: %s", rewrite.segments[0].path, rewrite.error or "it changed")
        return failures
