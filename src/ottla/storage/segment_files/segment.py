"""One segment of a partition's log: a file of batches and its indexes.

Bytes are read with `pread`, not through a mapping: a failing disk then fails one read instead of raising SIGBUS in the
process, and a file can be truncated or removed while it is read. See docs/decisions/003-reads-are-preads.md for
measurements.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import ApiError, CorruptMessage
from ottla.records.batch import HEADER_BYTES, count_intact, read_header
from ottla.records.batches import find_batches
from ottla.storage.cipher import KEY_ID_END, key_id_of_batch
from ottla.storage.files import DELETED, ENCRYPTED_LOG, LOG, TXN_INDEX, file_name, write_all
from ottla.storage.segment_files.cold_read import Bounds, Unverified, find_checked
from ottla.storage.segment_files.read_ends import ReadEnds
from ottla.storage.segment_files.scan import NO_LIMIT, Damage, FoundBatch, Stretch, has_whole_batch, walk
from ottla.storage.segment_files.segment_indexes import NO_TIMESTAMP, OffsetEntry, SegmentIndexes
from ottla.storage.segment_files.timestamps import is_newest_right
from ottla.storage.segment_files.txn_index import TxnIndex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.records.batch import BatchHeader
    from ottla.storage.cipher import BatchCipher
    from ottla.storage.config import LogConfig
    from ottla.storage.segment_files.open_files import OpenFiles

_logger: Final = logging.getLogger(__name__)


class SegmentPlace(NamedTuple):
    folder: Path
    base_offset: int


class Segment:
    """Takes and returns plaintext batches, whether the file is encrypted by a `cipher` or not.

    Positions, sizes and headers are those in the file.
    """

    def __init__(
        self, place: SegmentPlace, config: LogConfig, files: OpenFiles, cipher: BatchCipher | None, *, is_new: bool
    ) -> None:
        folder, base_offset = place
        self.base_offset = base_offset
        self.config = config
        self.cipher = cipher
        self.path = folder / file_name(base_offset, LOG if cipher is None else ENCRYPTED_LOG)
        self.size = 0 if is_new else self.path.stat().st_size
        self.indexes = SegmentIndexes(self.path, base_offset, files, is_new=is_new)
        self.txn_index = TxnIndex(folder / file_name(base_offset, TXN_INDEX))
        self._files = files
        self._is_active = False
        self._fd: int | None = None
        """For appends. Closed while many other files are open; then reads use another one."""
        self.unverified = Unverified(self.size)
        self.read_ends = ReadEnds()
        self._is_newest_known = is_new

    @classmethod
    def create(
        cls, folder: Path, base_offset: int, config: LogConfig, files: OpenFiles, cipher: BatchCipher | None = None
    ) -> Segment:
        """A new, empty segment."""
        segment = cls(SegmentPlace(folder, base_offset), config, files, cipher, is_new=True)
        segment.indexes.write_out(is_final=False)
        segment.txn_index.path.unlink(missing_ok=True)
        segment._fd = os.open(segment.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        segment._is_active = True
        files.add_appending(segment)
        return segment

    @classmethod
    def open(
        cls, folder: Path, base_offset: int, config: LogConfig, files: OpenFiles, cipher: BatchCipher | None = None
    ) -> Segment:
        """Open an existing segment; only the file size is read."""
        return cls(SegmentPlace(folder, base_offset), config, files, cipher, is_new=False)

    @property
    def oldest_key_id(self) -> int:
        """The oldest key id in the segment; 0 if unencrypted.

        Keys only get newer, so it is the key id of the first batch.
        """
        if self.cipher is None:
            return 0
        start = self.read_at(0, KEY_ID_END)
        return key_id_of_batch(start) if len(start) == KEY_ID_END else self.cipher.key_id

    @property
    def newest_timestamp(self) -> int:
        """The largest timestamp in the segment, NO_TIMESTAMP if there is none."""
        if not self._is_newest_known:
            if self.indexes.is_found and not is_newest_right(self):
                self.rebuild_indexes()
            self._is_newest_known = True
        return self.indexes.newest_timestamp

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, from which a segment's age is counted."""
        try:
            return self.header_at(0).max_timestamp if self.size else NO_TIMESTAMP
        except ApiError:
            return NO_TIMESTAMP

    # Writing

    def append(self, batch: bytes | bytearray | memoryview, last_offset: int, max_timestamp: int) -> None:
        """Append one batch."""
        if self.cipher is not None:
            batch = self.cipher.seal(batch)
        if self._fd is None:
            self._open_file()
        position = self.size
        size = len(batch)
        # Written at `size`, not at the end of the file: remains of a failed append are overwritten.
        if os.pwrite(self._fd, batch, position) != size:  # type: ignore[arg-type]  # it is the active segment
            write_all(self._fd, batch, position)  # type: ignore[arg-type]
        self.indexes.add(position, size, last_offset, max_timestamp, self.config)
        # Published last: a reader that sees `size` may read every byte below it.
        self.size = position + size

    def forget_torn_tail(self) -> None:
        """Truncate the remains of a failed append."""
        if self._fd is not None:
            os.ftruncate(self._fd, self.size)
        elif self._is_active:
            os.truncate(self.path, self.size)

    def fsync_targets(self) -> Iterator[int]:
        """Descriptors to sync in another thread. The caller closes them.

        The offset and time index of the active segment are excluded: unless it is closed cleanly, they are rebuilt.
        """
        if self._fd is not None:
            yield os.dup(self._fd)
            paths = [self.txn_index.path]
        else:
            paths = [self.path, self.txn_index.path] if self._is_active else self.paths()
        for path in paths:
            if path == self.path or path.exists():
                yield os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def complete(self) -> None:
        """Bring the files into their final state; the segment can still be appended to."""
        if self._is_active:
            if (self.path.stat() if self._fd is None else os.fstat(self._fd)).st_size > self.size:
                self.forget_torn_tail()
            self.indexes.write_out(is_final=True)

    def seal(self) -> None:
        """Make the segment read-only: complete the indexes and close the descriptor."""
        self.complete()
        self.release()

    def release(self) -> None:
        """Take no more appends."""
        self._is_active = False
        self.close_for_now()

    def close_for_now(self) -> None:
        """Close the descriptor; the next append opens it again."""
        if self._fd is not None:
            self._files.remove_appending(self)
            os.close(self._fd)
            self._fd = None

    def _open_file(self) -> None:
        if not self._is_active:
            raise ValueError(f"{self.path} is not the active segment")
        self._fd = self._files.with_room(lambda: os.open(self.path, os.O_RDWR | os.O_CLOEXEC))
        self._files.add_appending(self)

    def open_for_append(self, ended_at: int = NO_LIMIT) -> int:
        """Make an existing segment the active one; returns the log end offset.

        If its end is corrupt, the last known end offset counts, so that no offset is assigned twice.
        """
        entry = self.indexes.last
        position, offset = 0, self.base_offset
        if entry is not None and self.matches(entry):
            position, offset = entry.position, self.header_at(entry.position).base_offset
        self.indexes.drop_from(position, offset)
        is_damaged = False
        for batch in self.walk(position, offset, ended_at):
            is_damaged = isinstance(batch, Damage)
            if isinstance(batch, Damage):
                _logger.error("%s: corrupt batch at position %d: %s", self.path, batch.position, batch.reason)
            else:
                self.index(batch.position, batch.header)
                offset = batch.header.next_offset
        self._is_active = True
        # Open ahead of the first append: the fast path for fetches reads open files only.
        if self._files.has_room_to_append:
            self._open_file()
        return max(offset, ended_at) if is_damaged and ended_at < NO_LIMIT else offset

    def truncate(self, position: int, offset: int) -> None:
        """Truncate the segment at `position`, the start of the batch with `offset`."""
        os.truncate(self.path, position)
        self.size = position
        self.unverified.truncate(position)
        self.read_ends.clear()
        self.txn_index.drop_from(offset)
        self.indexes.drop_from(position, offset)

    def close(self) -> None:
        """Close all descriptors without writing."""
        self.release()
        for path in self.paths():
            self._files.forget(path)

    def unlink(self) -> None:
        self.close()
        for path in self.paths():
            path.unlink(missing_ok=True)

    def rename_deleted(self) -> list[Path]:
        """Rename the files for later removal; returns their new names."""
        self.close()
        return [path.rename(path.with_name(path.name + DELETED)) for path in self.paths() if path.exists()]

    def paths(self) -> list[Path]:
        return [self.path, self.indexes.offset_path, self.indexes.time_path, self.txn_index.path]

    # Reindexing

    def index(self, position: int, header: BatchHeader) -> None:
        self.indexes.add(position, header.size, header.last_offset, header.max_timestamp, self.config)

    def matches(self, entry: OffsetEntry) -> bool:
        """Whether a batch at the entry's position ends with the entry's offset."""
        try:
            return 0 < entry.position < self.size and (self.header_at(entry.position).last_offset == entry.last_offset)
        except ApiError:
            return False

    def _entry_before(self, offset: int) -> OffsetEntry | None:
        entry = self.indexes.at_or_before(offset)
        if entry is not None and self.indexes.is_found and not self.matches(entry):
            self.rebuild_indexes()
            entry = self.indexes.at_or_before(offset)
        return entry

    def rebuild_indexes(self) -> None:
        """Rebuild the indexes after a mismatch with a batch. Only intact batches get an entry."""
        _logger.warning("%s: the indexes do not match the batches; rebuilding them", self.path)
        self.indexes.reset()
        for batch in self.walk(0, self.base_offset):
            if isinstance(batch, FoundBatch):
                self.index(batch.position, batch.header)
        if not self._is_active:
            # Entries that cannot be written stay in memory, and are rebuilt after the next start.
            with suppress(OSError):
                self.indexes.write_out(is_final=True)

    # Reading

    def read(self, bounds: Bounds, end_offset: int) -> memoryview:
        """Complete batches from the one with `from_offset` on: at least one, more while they fit into `max_bytes`.

        Empty if the rest of this segment is below `from_offset`. `end_offset` is the offset after
        the segment's last record.
        """
        known = self.read_ends.pop(bounds.from_offset, None)
        position = self.place_before(bounds.from_offset)[0] if known is None else known
        slack = self.config.index_interval_bytes if known is None else 0
        floor = self.base_offset if known is None else bounds.from_offset
        size = max(bounds.max_bytes + slack, HEADER_BYTES)
        while position < self.size:
            data = self._files.buffers.read(self.read_fd(), min(size, self.size - position), position)
            try:
                start, end, next_offset = find_batches(data, *bounds)
                if end == start:
                    # The first batch is larger than `max_bytes`, or starts at the limit.
                    position, start = position + start, 0
                    data = self._whole_batch_at(position)
                    _, end, next_offset = find_batches(data, *bounds)
            except ApiError:
                return self._read_damaged(bounds, end_offset)
            if self.unverified.covers(position, position + max(end, start, HEADER_BYTES)) and (
                end <= start or not self._verify(position, memoryview(data)[:end], floor, end_offset)
            ):
                return self._read_damaged(bounds, end_offset)
            if end >= 0:
                found = memoryview(data)[start:end]
                if self.cipher is not None:
                    try:
                        found = self.cipher.open(found)
                    except ApiError:
                        return self._read_damaged(bounds, end_offset)
                self.read_ends.remember(next_offset, position + end)
                return found
            if start == 0:
                # Less than a header in a place where a batch must be: the file was truncated.
                return self._read_damaged(bounds, end_offset)
            position += start
        return memoryview(b"")

    def _verify(self, position: int, batches: memoryview, floor: int, end_offset: int) -> bool:
        """Whether these batches at `position`, with offsets of at least `floor`, are intact."""
        intact, next_offset = count_intact(batches, floor)
        end = position + intact
        if intact < len(batches) or next_offset > self._offset_at(end, end_offset) or not self._is_authentic(batches):
            return False
        self.unverified.checked(position, end)
        return True

    def _is_authentic(self, batches: memoryview) -> bool:
        # Includes batches that the reader skips: a changed offset must not cause a batch to be skipped.
        try:
            return self.cipher is None or self.cipher.open(batches) is not None
        except ApiError:
            return False

    def _offset_at(self, position: int, end_offset: int) -> int:
        try:
            return self.header_at(position).base_offset if self.size - position >= HEADER_BYTES else end_offset
        except ApiError:
            return end_offset

    def _read_damaged(self, bounds: Bounds, end_offset: int) -> memoryview:
        """The readable batches, one by one; raises CorruptMessage if the requested batch is corrupt."""
        position, offset = self.place_before(bounds.from_offset)
        try:
            found = find_checked(self._stretch(position, offset, end_offset), bounds)
        except CorruptMessage as damaged:
            _logger.error("%s: %s", self.path, damaged)
            raise CorruptMessage(f"{self.path.parent.name}/{self.path.name}: {damaged}") from None
        return memoryview(b"") if found is None else self.batches_at(found.start, found.end - found.start)

    def place_before(self, offset: int) -> tuple[int, int]:
        """The closest indexed position at or before the batch with `offset`, and the lowest offset there."""
        entry = self._entry_before(offset)
        if entry is None:
            return 0, self.base_offset
        return entry.position, self.header_at(entry.position).base_offset

    def walk(self, position: int, offset: int, end_offset: int = NO_LIMIT) -> Iterator[FoundBatch | Damage]:
        """Each intact batch from this position on, where no offset is below `offset`, and the corrupt ranges."""
        return walk(self._stretch(position, offset, end_offset))

    def has_whole_batch(self, position: int) -> bool:
        return has_whole_batch(self._stretch(position, 0, NO_LIMIT))

    def _stretch(self, position: int, offset: int, end_offset: int) -> Stretch:
        decrypt = None if self.cipher is None else self.cipher.open
        return Stretch(self.read_at, position, self.size, offset, end_offset, decrypt)

    def position_of(self, offset: int) -> int:
        """The position of the first batch that contains `offset` or is above it."""
        return next((position for position, _ in self.headers(offset)), self.size)

    def headers(self, from_offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """The position and header of each intact batch from the one with `from_offset` on."""
        for batch in self.walk(*self.place_before(from_offset)):
            if isinstance(batch, FoundBatch) and batch.header.last_offset >= from_offset:
                yield batch.position, batch.header

    def header_at(self, position: int) -> BatchHeader:
        return read_header(self.read_at(position, HEADER_BYTES))

    def read_at(self, position: int, size: int) -> bytes:
        # Never beyond `size`: behind it may be the remains of a failed append.
        return os.pread(self.read_fd(), min(size, self.size - position), position)

    def batches_at(self, position: int, size: int) -> memoryview:
        """The complete batches, decrypted."""
        stored = memoryview(self.read_at(position, size))
        return stored if self.cipher is None else self.cipher.open(stored)

    def _whole_batch_at(self, position: int) -> bytes:
        size = self.header_at(position).size
        if size > self.size - position:
            raise CorruptMessage(f"{self.path.name}: the batch at {position} exceeds the end of the file")
        return self.read_at(position, size)

    def read_fd(self) -> int:
        """A descriptor for reading. Valid until the next call for any segment."""
        return self._files.get(self.path) if self._fd is None else self._fd
