"""Encrypting a segment anew: with a newer key, or for the first time.

The log's owner begins it, any thread runs it, and the owner puts the result in place. The new files are made in a
folder of their own, and take the old ones' place by the steps of `swap_files`: wherever this is interrupted, either
the old segment is there or the new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.errors import ApiError, CorruptMessage
from ottla.storage.files import sync_folder
from ottla.storage.flushing import sync_all
from ottla.storage.open_files import OpenFiles
from ottla.storage.scan import Damage
from ottla.storage.segment import Segment
from ottla.storage.swap_files import CLEANED

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.storage.cipher import BatchCipher
    from ottla.storage.partition_log import PartitionLog

REWRITING: Final = "rewriting.tmp"
_FILES_NEEDED: Final = 8


class Rewrite:
    """One segment being encrypted anew."""

    def __init__(self, segment: Segment, cipher: BatchCipher) -> None:
        self.segment = segment
        self.size = segment.size
        self.error: OSError | ApiError | None = None
        self._cipher = cipher

    def run(self) -> None:
        """Write it, beside the old one. Never raises: `error` says what went wrong."""
        folder = self.segment.path.parent
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
        old = self.segment
        reading = old.cipher and old.cipher.with_buffers(files.buffers)
        source = Segment.open(old.path.parent, old.base_offset, old.config, files, reading)
        source.size = self.size
        target = Segment.create(scratch, old.base_offset, old.config, files, self._cipher.with_buffers(files.buffers))
        try:
            for batch in source.walk(0, old.base_offset):
                if isinstance(batch, Damage):
                    raise CorruptMessage(f"{old.path.name}: the batch at {batch.position} is damaged: {batch.reason}")
                target.append(batch.data, batch.header.last_offset, batch.header.max_timestamp)
            target.seal()
        finally:
            target.close()
            source.close()
        if old.txn_index.path.exists():
            target.txn_index.path.write_bytes(old.txn_index.path.read_bytes())
        sync_all(target.fsync_targets())
        return [path for path in target.paths() if path.exists()]


def rewrites_due(log: PartitionLog, below: int) -> list[Rewrite]:
    """What there is to encrypt anew so that nothing is left of keys older than this, nor of none."""
    cipher = log.cipher
    if cipher is None or log.is_offline:
        return []
    if log.segments[-1].oldest_key_id < below:
        # What is being appended to stays as it is.
        log.roll()
    return [Rewrite(segment, cipher) for segment in log.segments[:-1] if segment.oldest_key_id < below]


def remove_rewriting(scratch: Path) -> None:
    if scratch.exists():
        import shutil  # only now: it takes 2 ms, which no other start should wait for

        shutil.rmtree(scratch)
