"""Files in a table's folder that no snapshot has: left behind by killed writers and refused commits."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table

_log: Final = logging.getLogger(__name__)


def remove_orphans(table: Table, older_than_s: float, now_s: float) -> int:
    """How many were removed. Younger files may belong to a commit that is about to land."""
    from pyarrow.fs import FileSelector, FileType
    from pyiceberg.io.pyarrow import PyArrowFileIO

    if not isinstance(table.io, PyArrowFileIO):
        _log.warning("%s: files of %s cannot be listed", ".".join(table.name()), type(table.io).__name__)
        return 0
    scheme, netloc, folder = PyArrowFileIO.parse_location(table.location(), table.io.properties)
    files = table.io.fs_by_scheme(scheme, netloc)
    # Listed before the table is loaded: what is committed in between is then known.
    listed = files.get_file_info(FileSelector(folder, recursive=True, allow_not_found=True))
    known = {PyArrowFileIO.parse_location(each, table.io.properties)[2] for each in _referenced(table.refresh())}
    orphans = [
        each.path
        for each in listed
        if each.type == FileType.File and each.path not in known and now_s - each.mtime_ns / 1e9 > older_than_s
    ]
    for path in orphans:
        files.delete_file(path)
    return len(orphans)


def _referenced(table: Table) -> Iterator[str]:
    yield table.metadata_location
    for entry in table.metadata.metadata_log:
        yield entry.metadata_file
    for statistics in (*table.metadata.statistics, *table.metadata.partition_statistics):
        yield statistics.statistics_path
    seen: set[str] = set()
    for snapshot in table.metadata.snapshots:
        yield snapshot.manifest_list
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            yield manifest.manifest_path
            for each in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                yield each.data_file.file_path
