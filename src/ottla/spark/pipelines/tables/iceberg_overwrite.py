"""Snapshots that replace files of an Iceberg table, with as few manifests as those that add files.

pyiceberg's own keep the manifest of every earlier overwrite, although all its entries are deleted, and merge none: each
commit would open one or two more than the one before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyiceberg.manifest import ManifestContent
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _ManifestMergeManager, _OverwriteFiles

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table, Transaction

_MERGED_FROM: Final = 20
"""Small manifests; fewer are left alone."""
_TARGET_BYTES: Final = 256 << 10


class Overwrite(_OverwriteFiles):
    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        live = [each for each in manifests if self._counts(each)]
        data = [each for each in live if each.content == ManifestContent.DATA]
        others = [each for each in live if each.content != ManifestContent.DATA]
        manager = _ManifestMergeManager(_TARGET_BYTES, _MERGED_FROM, True, self)  # noqa: FBT003 - positional there
        merged: list[ManifestFile] = manager.merge_manifests(data)
        return merged + others

    def _counts(self, manifest: ManifestFile) -> bool:
        """Whether the manifest has files, or lists files that this snapshot removes."""
        is_new = manifest.added_snapshot_id in (None, self.snapshot_id)
        return is_new or manifest.has_added_files() or manifest.has_existing_files()


def overwrite(table: Table, change: Transaction) -> Overwrite:
    is_empty = change.table_metadata.current_snapshot() is None
    operation = Operation.APPEND if is_empty else Operation.OVERWRITE
    return Overwrite(operation=operation, transaction=change, io=table.io)
