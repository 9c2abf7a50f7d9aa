"""Rewrites consecutive segments as one: re-encrypted or compacted.

The log's owner starts a rewrite, any thread runs it, and the owner installs the result. The new files are created in a
separate folder, and replace the old ones with the steps of `swap_files`: after an interruption, either the old segments
or the new one exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.errors import ApiError, CorruptMessage
from ottla.records.batch import read_header
from ottla.storage.files import storage_errors, sync_folder
from ottla.storage.flushing import sync_all
from ottla.storage.rewrites.swap_files import CLEANED, discard_cleaned, swap_in
from ottla.storage.segment_files.open_files import OpenFiles
from ottla.storage.segment_files.scan import Damage
from ottla.storage.segment_files.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ottla.storage.cipher import BatchCipher
    from ottla.storage.partition_log import PartitionLog
    from ottla.storage.segment_files.scan import FoundBatch
    from ottla.storage.segment_files.txn_index import AbortedTransaction

REWRITING: Final = "rewriting.tmp"
_FILES_NEEDED: Final = 8


class Rewrite:
    """A rewrite that only changes the encryption; subclasses remove batches or records."""

    def __init__(self, segments: Sequence[Segment], cipher: BatchCipher | None) -> None:
        self.segments = list(segments)
        self.error: OSError | ApiError | None = None
        self.removed_until = 0
        """The offset after the last batch from which tombstones, or a marker, were removed."""
        self._sizes = [segment.size for segment in segments]
        self._cipher = cipher

    @property
    def base_offset(self) -> int:
        return self.segments[0].base_offset

    def is_of(self, segments: list[Segment]) -> bool:
        """Whether the rewritten segments still exist unchanged."""
        if self.segments[0] not in segments:
            return False
        number = segments.index(self.segments[0])
        is_there = segments[number : number + len(self.segments)] == self.segments
        return is_there and [segment.size for segment in self.segments] == self._sizes

    def run(self) -> None:
        """Write the new segment beside the old ones. Never raises; failures are stored in `error`."""
        folder = self.segments[0].path.parent
        scratch = folder / REWRITING
        files = OpenFiles(_FILES_NEEDED)
        try:
            remove_rewriting(scratch)
            scratch.mkdir()
            for path in self._write(scratch, files):
                path.rename(folder / (path.name + CLEANED))
            sync_folder(folder)
        except (OSError, ApiError) as failed:
            self.error = failed
        finally:
            files.close()
            remove_rewriting(scratch)

    def _write(self, scratch: Path, files: OpenFiles) -> list[Path]:
        first = self.segments[0]
        cipher = self._cipher and self._cipher.with_buffers(files.buffers)
        target = Segment.create(scratch, first.base_offset, first.config, files, cipher)
        try:
            for batch in walk_batches(self.segments, self._sizes, files):
                kept = self._kept(batch)
                if kept is not None:
                    header = batch.header if kept is batch.data else read_header(kept)
                    target.append(kept, header.last_offset, header.max_timestamp)
            target.seal()
        finally:
            target.close()
        for segment in self.segments:
            for aborted in segment.txn_index.overlapping(0, segment.base_offset + (1 << 32)):
                if self._keeps_noting(aborted):
                    target.txn_index.append(aborted)
        sync_all(target.fsync_targets())
        return [path for path in target.paths() if path.exists()]

    def _kept(self, batch: FoundBatch) -> bytes | bytearray | memoryview | None:
        """The replacement of this batch, if any."""
        return batch.data

    def _keeps_noting(self, _aborted: AbortedTransaction) -> bool:
        return True


def walk_batches(segments: Sequence[Segment], sizes: Sequence[int], files: OpenFiles) -> Iterator[FoundBatch]:
    """Every batch of these segments, in any thread, since `files` are separate. Raises CorruptMessage for a corrupt
    batch.
    """
    for segment, size in zip(segments, sizes, strict=True):
        reading = segment.cipher and segment.cipher.with_buffers(files.buffers)
        source = Segment.open(segment.path.parent, segment.base_offset, segment.config, files, reading)
        source.size = size
        try:
            for batch in source.walk(0, segment.base_offset):
                if isinstance(batch, Damage):
                    reason = f"corrupt batch at position {batch.position}: {batch.reason}"
                    raise CorruptMessage(f"{segment.path.name}: {reason}")
                yield batch
        finally:
            source.close()


def rewrites_due(log: PartitionLog, below: int) -> list[Rewrite]:
    """The segments to re-encrypt so that no data of older keys, nor unencrypted data, is left."""
    cipher = log.cipher
    if cipher is None or log.is_offline:
        return []
    if log.segments[-1].oldest_key_id < below:
        # The active segment is not re-encrypted.
        log.roll()
    return [Rewrite([segment], cipher) for segment in log.segments[:-1] if segment.oldest_key_id < below]


def put_in_place(log: PartitionLog, rewrite: Rewrite) -> bool:
    """Replace the old segments by the rewritten one. Returns False if they have changed meanwhile."""
    base_offset = rewrite.base_offset
    if rewrite.error or log.is_offline or log.is_abandoned or not rewrite.is_of(log.segments[:-1]):
        discard(log, rewrite)
        return False
    try:
        for old in rewrite.segments:
            old.close()
        swap_in(log.folder, base_offset, [old.base_offset for old in rewrite.segments])
        new = Segment.open(log.folder, base_offset, log.config, log.files, log.cipher)
    except OSError as failed:
        raise log.go_offline(f"could not replace a segment: {failed.strerror or failed}") from failed
    log.segments.replace(rewrite.segments, new)
    log.unsynced.keep_only(log.segments.all)
    log.keep_needed_snapshots()
    return True


def discard(log: PartitionLog, rewrite: Rewrite) -> None:
    with storage_errors(log.folder.name):
        discard_cleaned(log.folder, rewrite.base_offset)


def remove_rewriting(scratch: Path) -> None:
    if scratch.exists():
        import shutil  # imported lazily: takes 2 ms

        shutil.rmtree(scratch)
