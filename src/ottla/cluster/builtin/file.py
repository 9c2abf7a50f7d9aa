"""The SQLite file of the built-in catalog, synced on every commit. Ephemeral nodes are not stored."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING, Final

from ottla.cluster.operations import Node
from ottla.core.errors import DataDirError
from ottla.storage.catalog.database import transaction
from ottla.storage.files import sync_folder
from ottla.storage.folder.meta_properties import WORKERS_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.cluster.builtin.tree import Changes

_APPLICATION_ID: Final = 0x4F74_776B
_FORMAT: Final = 1
_CHANGES_PER_OPENING: Final = 1 << 32

_SCHEMA: Final = (
    "CREATE TABLE nodes (path TEXT PRIMARY KEY, data BLOB, version INTEGER, created INTEGER) WITHOUT ROWID",
    "CREATE TABLE openings (count INTEGER NOT NULL)",
    "INSERT INTO openings VALUES (0)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_FORMAT}",
)


class CatalogFile:
    """The catalog's file. The caller holds the lock on the folder."""

    def __init__(self, folder: Path) -> None:
        """Raises DataDirError if the file is unusable."""
        path = folder / WORKERS_FILE
        try:
            # The file will contain password verifiers; SQLite's side files inherit its mode.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            sync_folder(folder)
            self._db = sqlite3.connect(path, timeout=0, isolation_level=None)
            _prepare(self._db, path)
            self.first_change = self._count_opening() * _CHANGES_PER_OPENING
            """Changes are numbered from here on: numbers of an earlier opening are not used again."""
        except (OSError, sqlite3.Error) as refused:
            raise DataDirError(f"could not open {path}: {refused}") from refused

    def _count_opening(self) -> int:
        with transaction(self._db):
            self._db.execute("UPDATE openings SET count = count + 1")
        count: int = self._db.execute("SELECT count FROM openings").fetchone()[0]
        return count

    def read(self) -> dict[str, Node]:
        rows = self._db.execute("SELECT path, data, version, created FROM nodes")
        return {path: Node(data, version, created) for path, data, version, created in rows}

    def write(self, changes: Changes) -> None:
        """Write changes durably; raises StorageError and changes nothing on failure."""
        gone = [(path,) for path, node in changes.items() if node is None]
        kept = [
            (path, node.data, node.version, node.created)
            for path, node in changes.items()
            if node is not None and not node.owner
        ]
        if gone or kept:
            with transaction(self._db):
                self._db.executemany("DELETE FROM nodes WHERE path = ?", gone)
                self._db.executemany("INSERT OR REPLACE INTO nodes VALUES (?, ?, ?, ?)", kept)

    def close(self) -> None:
        self._db.close()


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    # A deleted user's verifier must not stay readable in a free page.
    db.execute("PRAGMA secure_delete = ON")
    known = db.execute("PRAGMA user_version").fetchone()[0]
    if known == 0:
        with transaction(db):
            for statement in _SCHEMA:
                db.execute(statement)
    elif db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise DataDirError(f"{path} is a SQLite database of another application")
    elif known > _FORMAT:
        raise DataDirError(f"{path} has the format {known} of a newer Ottla; this one reads {_FORMAT}")
