"""The data folder: a folder per partition, and shared checkpoints.

The layout is that of an Apache Kafka log directory.
"""

from __future__ import annotations

import logging
import re
import uuid
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.core.errors import DataDirError, StorageError, UnknownTopicOrPartition
from ottla.core.ids import TopicPartition, problem_with_topic_name
from ottla.storage.files import folder_errors, replace_file, storage_errors, sync_folder
from ottla.storage.folder import checkpoints, meta_properties
from ottla.storage.folder.closed_log import facts_of
from ottla.storage.folder.closing import close_logs
from ottla.storage.folder.folder_checkpoints import FolderCheckpoints
from ottla.storage.folder.folder_keys import check_keys
from ottla.storage.folder.folder_lock import FolderLock
from ottla.storage.folder.log_opening import LogOpening
from ottla.storage.segment_files.open_files import OpenFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from ottla.core.clock import Clock
    from ottla.core.ids import TopicId
    from ottla.core.keys import KeyRing
    from ottla.core.sealing import Sealer
    from ottla.storage.cipher import BatchCipher
    from ottla.storage.config import LogConfig
    from ottla.storage.folder.closed_log import LogFacts
    from ottla.storage.folder.closing import RunAll
    from ottla.storage.partition_log import PartitionLog

_logger: Final = logging.getLogger(__name__)

CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
_CLEAN_CONTENTS: Final = b'{"version":0,"brokerEpoch":-1}'
_PARTITION: Final = r"(?P<topic>.+)-(?P<partition>0|[1-9][0-9]*)"
_DELETED: Final = "-delete"
_DELETED_NAME: Final = r".+\.[0-9a-f]{32}-delete"
_STRAY: Final = "-stray"
_LONGEST_NAME: Final = 255
_MODE: Final = 0o700
"""Mode of a new folder: not readable by others. An existing folder keeps its mode."""
_DESCRIPTORS_TO_CLOSE_A_LOG: Final = 16
_FILES_TO_OPEN_A_LOG: Final = 16
_KRAFT: Final = "__cluster_metadata"
"""The log of Kafka's controllers, in a folder like a partition's, but not a topic."""


class DataDir:
    """A data folder, locked by this process. Partitions are opened individually, when needed."""

    def __init__(  # noqa: PLR0913
        self,
        path: Path,
        clock: Clock,
        *,
        open_files: int = 512,
        sealer: Sealer | None = None,
        cluster_id: str | None = None,
        node_id: int = 0,
    ) -> None:
        """The ids are stored if the folder is new."""
        self.path = path
        self.sealer = sealer
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.when_opened: Callable[[TopicPartition, PartitionLog], None] | None = None
        self.sets_strays_aside = False
        """Whether a folder with another topic id is renamed when its partition is opened, instead of being rejected:
        a shared catalog knows which topics exist.
        """
        self._failed: set[TopicPartition] = set()
        self._undeleted: set[TopicPartition] = set()
        """Deleted partitions whose folders could not be renamed yet."""
        self._opening: set[TopicPartition] = set()
        """Partitions whose logs are being opened in other threads."""
        self._doomed: list[Path] = []
        """Folders of deleted partitions that were renamed later, and are still to be removed."""
        self._clock = clock
        self._files = OpenFiles(open_files)
        with folder_errors(path):
            path.mkdir(mode=_MODE, parents=True, exist_ok=True)
            # Checked before it is locked, so that a foreign folder does not even get a lock file.
            meta_properties.load(path)
            self.keys = check_keys(path, None if sealer is None else sealer.ring)
        self._lock = FolderLock(path)
        try:
            with folder_errors(path):
                self._open(cluster_id, node_id)
        except DataDirError:
            self._lock.release()
            raise

    def _open(self, cluster_id: str | None, node_id: int) -> None:
        self.meta = meta_properties.load_or_create(self.path, cluster_id=cluster_id, node_id=node_id)
        if self.keys is not None and self.sealer is not None:
            self.keys.note(self.sealer.ring)
        self.checkpoints = FolderCheckpoints(self.path, self.logs, self._files)
        is_marked = (self.path / CLEAN_SHUTDOWN).exists()
        self.was_clean = is_marked and self.checkpoints.is_intact
        # From here on a crash must be detectable. Except in a new folder, the removal may not be synced yet.
        if is_marked or not self.meta.is_new:
            (self.path / CLEAN_SHUTDOWN).unlink(missing_ok=True)
            sync_folder(self.path)

    def __enter__(self) -> DataDir:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def on_refused_write(self, call: Callable[[OSError], None]) -> None:
        """Call this with the error of each failed append."""
        self._files.on_refused_write = call

    def partitions(self) -> Iterator[tuple[TopicPartition, TopicId | None]]:
        """The partitions with a folder, and their stored topic ids."""
        for folder in sorted(self.path.iterdir()):
            match = re.fullmatch(_PARTITION, folder.name)
            if match and folder.is_dir() and match["topic"] != _KRAFT and not problem_with_topic_name(match["topic"]):
                at = TopicPartition(match["topic"], int(match["partition"]))
                try:
                    topic_id = checkpoints.read_topic_id(folder)
                except OSError as failed:
                    _logger.error("%s: partition is not loaded: could not read its topic id: %s", folder, failed)
                    continue
                yield at, topic_id

    def facts(self, at: TopicPartition) -> LogFacts | None:
        """Offsets and size of a partition without opening its log; None if it must be opened."""
        if at in self.logs or at in self._failed or at in self._opening:
            return None
        end = self.checkpoints.recovery_points.get(at) if self.was_clean else None
        return facts_of(f"{self.path}/{at}", end, self.checkpoints.log_start(at))

    # Opening

    def open_partition(self, at: TopicPartition, config: LogConfig, topic_id: TopicId | None = None) -> PartitionLog:
        """The partition's log, opened or created. The folder of a deleted or stray partition is renamed first."""
        if at in self.logs:
            return self.logs[at]
        opening = self._prepare(at, config, topic_id, self._files)
        opening.run()
        return self._use(opening)

    def begin_opening(self, at: TopicPartition, config: LogConfig, topic_id: TopicId) -> LogOpening:
        """Like `open_partition`, in steps: run the result in any thread, then pass it to `finish_opening` or
        `cancel_opening`. Until then the partition is neither opened nor deleted.
        """
        opening = self._prepare(at, config, topic_id, OpenFiles(_FILES_TO_OPEN_A_LOG))
        self._opening.add(at)
        return opening

    def finish_opening(self, opening: LogOpening) -> PartitionLog:
        """The log that was opened; raises the error if it could not be opened."""
        self._opening.discard(opening.at)
        opening.files.join(self._files)
        return self._use(opening)

    def cancel_opening(self, opening: LogOpening) -> list[Path]:
        """Close the log that was opened, and delete the partition if it was deleted meanwhile; the result is that of
        `delete_partitions`.
        """
        at = opening.at
        self._opening.discard(at)
        if opening.abandon():
            self._failed.add(at)
        opening.files.close()
        return self.delete_partitions([at]) if at in self._undeleted else []

    def _prepare(self, at: TopicPartition, config: LogConfig, topic_id: TopicId | None, files: OpenFiles) -> LogOpening:
        # Not needed at the start:
        from ottla.storage.recovery import LastKnown, open_log

        if at in self._opening:
            raise StorageError(f"{at} is still being recovered")
        if at in self._undeleted:
            self._doomed += self._put_away(at, _DELETED)
        folder = self.path / str(at)
        self._check_owner(at, topic_id)
        is_new = not folder.exists()
        if is_new:
            self.checkpoints.begin_partition(at)
        noted = self.checkpoints
        # A clean shutdown records every partition: an unrecorded one was added since, in unknown state.
        is_clean = self.was_clean and at in noted.recovery_points and at not in self._failed
        known = LastKnown(is_clean, noted.recovery_points.get(at, 0), noted.log_start(at), noted.aborted.get(at, {}))
        cipher = self._cipher(at, topic_id, files)
        opens = partial(open_log, folder, config, self._clock, files, known, cipher)
        return LogOpening(at, topic_id, files, opens, is_new=is_new)

    def _use(self, opening: LogOpening) -> PartitionLog:
        from ottla.storage.key_version import use_key_version  # not needed at the start

        at, log = opening.at, opening.result()
        try:
            with storage_errors(f"opening {at}"):
                if opening.topic_id is not None and checkpoints.read_topic_id(log.folder) is None:
                    checkpoints.write_topic_id(log.folder, opening.topic_id)
                if opening.is_new:
                    sync_folder(self.path)
                use_key_version(log)
        except StorageError:
            log.abandon()
            raise
        log.before_truncation = partial(self.checkpoints.lower, at)
        with suppress(StorageError):  # do not fail on a full disk: the next checkpoint lowers it
            self.checkpoints.lower(at, log.next_offset)
        self._failed.discard(at)
        self.logs[at] = log
        if self.when_opened is not None:
            self.when_opened(at, log)
        return log

    def let_go(self, at: TopicPartition) -> None:
        """Close a log after a disk error without writing, as in a crash, so that it can be opened and recovered
        again.
        """
        log = self.logs.pop(at, None)
        if log is not None:
            self.checkpoints.recovery_points[at] = log.recovery_point
            self._failed.add(at)
            log.abandon()

    def _cipher(self, at: TopicPartition, topic_id: TopicId | None, files: OpenFiles) -> BatchCipher | None:
        if self.sealer is None or self.keys is None:
            return None
        from ottla.storage.cipher import BatchCipher, BatchOwner  # not needed without encryption

        with storage_errors(f"reading {at}"):
            owner = topic_id or checkpoints.read_topic_id(self.path / str(at))
        if owner is None:
            raise DataDirError(f"{at} cannot be encrypted: its topic id is unknown")
        place = BatchOwner(owner, at.partition)
        cipher = BatchCipher(self.sealer, place, files.buffers, allows_plain=self.keys.allows_plain)
        cipher.find_own_keys(self.path / str(at))
        return cipher

    def use_keys(self, ring: KeyRing) -> None:
        """Encrypt with these keys from now on; DataDirError if the folder needs others."""
        from ottla.storage.key_version import refresh_own_keys

        if self.sealer is not None and self.keys is not None:
            check_keys(self.path, ring)
            with storage_errors("storing a new key id"):
                self.keys.note(ring)
            self.sealer.use(ring)
            for at, log in self.logs.items():
                try:
                    refresh_own_keys(log)
                except StorageError as failed:  # retried before the old key is given up
                    _logger.error("%s: its own keys could not be encrypted with the new key: %s", at, failed)

    @property
    def has_sealed_catalog(self) -> bool:
        return self.keys is not None and self.keys.has_sealed_catalog

    def note_sealed_catalog(self) -> None:
        """Reject an unsealed catalog from now on."""
        if self.sealer is not None and self.keys is not None:
            with storage_errors("storing that the catalog is sealed"):
                self.keys.note_sealed_catalog(self.sealer.ring)

    def settle_keys(self, below: int) -> None:
        """Record that no data of older keys, nor unencrypted data, is left."""
        if self.sealer is not None and self.keys is not None:
            with storage_errors("storing the key ids"):
                self.keys.settle(self.sealer.ring, below)

    def delete_partitions(self, partitions: Iterable[TopicPartition]) -> list[Path]:
        """Delete these partitions at once; the caller passes the remaining folders to `remove_deleted`.

        They are deleted even if an error is raised; a folder left on disk belongs to no topic, and is renamed by
        `retry_deletions`, or when a partition with its name is opened.
        """
        folders = []
        for at in partitions:
            if at in self._opening:
                self._undeleted.add(at)  # `cancel_opening` deletes it: until then another thread uses its folder
                continue
            try:
                folders += self._put_away(at, _DELETED)
            except StorageError as failed:
                if at not in self._undeleted:
                    _logger.error("%s: could not remove the folder of the deleted partition: %s", at, failed)
                self._undeleted.add(at)
        try:
            if folders:
                sync_folder(self.path)
        except OSError as failed:
            _logger.error(
                "could not sync the data folder; deleted partitions may reappear after a power failure: %s", failed
            )
        return folders

    def retry_deletions(self) -> list[Path]:
        """Retry deletions that failed; the result is that of `delete_partitions`."""
        doomed, self._doomed = self._doomed, []
        return doomed + self.delete_partitions(sorted(self._undeleted))

    def set_stray_aside(self, at: TopicPartition) -> Path:
        """Rename the folder of a stray partition, and keep its data."""
        for renamed in self._put_away(at, _STRAY):
            with storage_errors(f"moving {at} away"):
                sync_folder(self.path)
            return renamed
        raise UnknownTopicOrPartition(f"no partition {at}")

    def _put_away(self, at: TopicPartition, suffix: str) -> list[Path]:
        """Drop the partition and rename its folder; empty if it never had one."""
        log = self.logs.pop(at, None)
        if log is not None:
            log.abandon()
        self.checkpoints.drop(at)
        self._failed.discard(at)
        folder = self.path / str(at)
        unique = f".{uuid.uuid4().hex}{suffix}"
        renamed = self.path / (str(at)[: _LONGEST_NAME - len(unique)] + unique)
        with storage_errors(f"moving {at} away"):
            moved = [folder.rename(renamed)] if folder.exists() else []
        self._undeleted.discard(at)
        return moved

    def deleted_folders(self) -> list[Path]:
        """Folders of deleted partitions left by a crash, for `remove_deleted`."""
        return [
            folder for folder in self.path.iterdir() if re.fullmatch(_DELETED_NAME, folder.name) and folder.is_dir()
        ]

    # Closing

    def close(self, run_all: RunAll = map) -> None:
        """Close all logs. The next start skips recovery only if all of them were closed cleanly.

        Slow steps are passed to `run_all`, which may run them in other threads.
        """
        logs = list(self.logs.items())
        at_once = max(self._files.limit // _DESCRIPTORS_TO_CLOSE_A_LOG, 1)
        failed: list[TopicPartition] = []
        for start in range(0, len(logs), at_once):
            failed += close_logs(logs[start : start + at_once], run_all)
        try:
            self.checkpoints.write()
            self.checkpoints.note_aborted()
            if not failed and self._are_all_checked() and all(not log.is_dirty for log in self.logs.values()):
                replace_file(self.path / CLEAN_SHUTDOWN, _CLEAN_CONTENTS)
        except (StorageError, OSError) as refused:
            _logger.error(
                "could not write the clean shutdown marker; the next start will recover the logs: %s", refused
            )
        self.logs.clear()
        self._files.close()
        self._lock.release()

    def _are_all_checked(self) -> bool:
        """Whether no log is unrecovered, for example because the start failed."""
        return not self._failed and (self.was_clean or all(at in self.logs for at, _ in self.partitions()))

    def _check_owner(self, at: TopicPartition, topic_id: TopicId | None) -> None:
        folder = self.path / str(at)
        with storage_errors(f"reading {at}"):
            owner = checkpoints.read_topic_id(folder)
        if topic_id is None or owner in (None, topic_id):
            return
        if self.sets_strays_aside:
            renamed = self.set_stray_aside(at)
            _logger.warning("%s belongs to a deleted topic and was renamed to %s", at, renamed.name)
        else:
            raise DataDirError(f"{folder} belongs to a topic with id {owner}, not to {topic_id}")
