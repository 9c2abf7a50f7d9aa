"""Expiry of old snapshots, in the commits of the writer: every commit reads, copies and writes the list of all."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.snapshots import Snapshot

_log: Final = logging.getLogger(__name__)
UPKEEP: Final = {
    # A manifest for each commit would be opened by every reader. Small ones are merged, large ones are left alone.
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "20",
    "commit.manifest.target-size-bytes": str(256 << 10),
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "5",
}
"""Properties of tables with many commits."""
_SLACK: Final = 10
"""Expire at least this number at once: finding their files takes a few requests."""


@dataclass(slots=True)
class Expired:
    """Snapshots that a commit removes; their files are removed after it."""

    snapshots: list[Snapshot] = field(default_factory=list)
    replacing: list[Snapshot] = field(default_factory=list)
    """Later snapshots that took out data files which only expired ones have."""

    def remove_files(self, table: Table) -> None:
        """What is left behind by a crash in between takes space, and does no harm."""
        if not self.snapshots:
            return
        try:
            for path in _unused_files(table, self):
                table.io.delete(path)
        except Exception as failed:  # noqa: BLE001 - each file system has other error classes
            _log.warning("%s: could not remove files of expired snapshots: %s", ".".join(table.name()), failed)


def expire(table: Table, change: Transaction, keep: int, slack: int = _SLACK) -> Expired:
    """Let a transaction forget the oldest snapshots, if there are too many."""
    about = table.metadata
    old = forget_oldest(table, change, keep) if len(about.snapshots) >= keep + slack else []
    ids = {each.snapshot_id for each in old}
    replacing = [
        each
        for each in about.snapshots
        if each.parent_snapshot_id in ids and each.summary is not None and each.summary.operation.value != "append"
    ]
    return Expired(old, replacing)


def forget_oldest(table: Table, change: Transaction, keep: int) -> list[Snapshot]:
    """Forget those that no branch or tag names, so that `keep` are left after the commit; returns them."""
    from pyiceberg.table.update.snapshot import ExpireSnapshots

    about = table.metadata
    named = {ref.snapshot_id for ref in about.refs.values()}
    by_age = sorted(about.snapshots, key=lambda each: each.sequence_number or 0)
    old = [each for each in by_age[: max(len(by_age) - keep + 1, 0)] if each.snapshot_id not in named]
    if old:
        ExpireSnapshots(change).by_ids([each.snapshot_id for each in old]).commit()
    return old


def _has_older(table: Table, expired: Expired) -> bool:
    """Whether a tag or branch keeps a snapshot that may have the data files of expired ones."""
    newest = max(each.sequence_number or 0 for each in expired.snapshots)
    return any((each.sequence_number or 0) < newest for each in table.metadata.snapshots)


def _unused_files(table: Table, expired: Expired) -> set[str]:
    """Manifest lists, manifests and data files that no snapshot of the table has any more."""
    from pyiceberg.manifest import ManifestEntryStatus

    kept: set[str] = set()
    for snapshot in table.metadata.snapshots:
        kept |= {each.manifest_path for each in snapshot.manifests(table.io)}
    unused: set[str] = set()
    for snapshot in expired.replacing if not _has_older(table, expired) else ():
        for manifest in snapshot.manifests(table.io):
            if manifest.added_snapshot_id == snapshot.snapshot_id and manifest.deleted_files_count:
                entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
                unused |= {each.data_file.file_path for each in entries if each.status == ManifestEntryStatus.DELETED}
    for snapshot in expired.snapshots:
        unused |= {each.manifest_path for each in snapshot.manifests(table.io)} - kept
        unused.add(snapshot.manifest_list)
    return unused
