"""The file catalog.sqlite: created atomically, rejected if it is not a catalog, synced on every commit."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ottla.core.errors import DataDirError, StorageError
from ottla.core.ids import TopicId
from ottla.storage.catalog.schema import APPLICATION_ID, MIGRATIONS, format_version, upgrade

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CATALOG_FILE: Final = "catalog.sqlite"

_HEADER_BYTES: Final = 100
_HEADER_MAGIC: Final = b"SQLite format 3\0"
_USER_VERSION_AT: Final = 60
_APPLICATION_ID_AT: Final = 68

_SIDE_FILES: Final = ("", "-wal", "-journal")


def open_database(folder: Path) -> sqlite3.Connection:
    """Open or create the database. Raises DataDirError without changing anything if it is unusable."""
    path = folder.absolute() / CATALOG_FILE
    try:
        _refuse_unwritable(path)
        if path.exists():
            _refuse_foreign(path)
        else:
            _create(path)
        return _connect(path)
    except OSError as error:
        raise DataDirError(f"{path} cannot be used: {error.strerror or error}") from error


def close_untouched(db: sqlite3.Connection, path: Path) -> None:
    """Close an unusable database, without merging its write-ahead log.

    Before 3.12 Python cannot tell SQLite not to merge it: the content is then the same, in fewer files.
    """
    log = path.with_name(path.name + "-wal")
    if sys.version_info >= (3, 12) and log.exists() and log.stat().st_size > 0:
        db.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)  # noqa: FBT003
    db.close()


def damaged(path: Path, reason: object) -> DataDirError:
    """An error that describes the damage and how to fix it."""
    return DataDirError(
        f"{path} is damaged: {reason}. Restore it from a backup, or move {path.name} and {path.name}-wal to another "
        "folder: the next start finds the topics by their folders, but topic configs, users, ACLs and quotas have to "
        "be set again"
    )


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """A transaction, committed and synced when the block ends; raises StorageError without changes if that fails."""
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")
    except BaseException as error:
        # After a full disk and some other errors SQLite has rolled back automatically, otherwise it has not.
        if db.in_transaction:
            db.execute("ROLLBACK")
        if _is_refused_by_storage(error):
            raise StorageError(f"could not change the catalog: {error}") from error
        raise


def _is_refused_by_storage(error: BaseException) -> bool:
    # Full, locked and failing disks are OperationalErrors; a damaged file is a bare DatabaseError. Other
    # kinds (a broken constraint, a misused statement) are bugs and are not converted.
    return isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError


def _refuse_unwritable(path: Path) -> None:
    if not path.parent.is_dir():
        raise DataDirError(f"the data folder {path.parent} does not exist")
    if not os.access(path.parent, os.R_OK | os.W_OK | os.X_OK):
        raise DataDirError(f"the data folder {path.parent} is not writable")
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        raise DataDirError(f"{path} is not writable")


def _refuse_foreign(path: Path) -> None:
    """Reject a foreign file without SQLite, which would first roll a leftover journal into the file."""
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES or not header.startswith(_HEADER_MAGIC):
        raise damaged(path, "it is not a SQLite database")
    if _number_at(header, _APPLICATION_ID_AT) != APPLICATION_ID:
        raise DataDirError(f"{path} is a SQLite database, but not created by Ottla")
    _refuse_newer(path, _number_at(header, _USER_VERSION_AT))


def _refuse_newer(path: Path, version: int) -> None:
    if version > len(MIGRATIONS):
        raise DataDirError(
            f"{path} has format {version} of a newer Ottla; this version supports up to {len(MIGRATIONS)}"
        )


def _number_at(header: bytes, at: int) -> int:
    return int.from_bytes(header[at : at + 4])


def _create(path: Path) -> None:
    """Create the file under a temporary name, so that a file named catalog.sqlite is always complete."""
    if path.with_name(CATALOG_FILE + "-wal").exists():
        # SQLite would replay a leftover journal into the new file.
        raise DataDirError(f"{path} is missing, but {path.name}-wal with its last changes exists")
    draft = path.with_name(CATALOG_FILE + ".new")
    _remove(draft)
    try:
        # The file will contain password verifiers; SQLite's side files inherit its mode.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        _connect(draft, is_draft=True).close()
        _sync(draft)
        draft.rename(path)
    except BaseException:
        _remove(draft)
        raise
    _sync(path.parent)


def _remove(draft: Path) -> None:
    for suffix in _SIDE_FILES:
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _connect(path: Path, *, is_draft: bool = False) -> sqlite3.Connection:
    try:
        # Changes may be made in a worker thread, one at a time.
        db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            _check(db, path)
            # SQLite would sync a new file ten times; `_create` syncs it once.
            db.execute(f"PRAGMA synchronous = {'OFF' if is_draft else 'FULL'}")
            _prepare(db)
        except BaseException:
            close_untouched(db, path)
            raise
    except (sqlite3.Error, StorageError) as error:
        raise DataDirError(_sentence(path, error)) from error
    return db


def _check(db: sqlite3.Connection, path: Path) -> None:
    # Set before the first read, exclusive locking holds the lock until the file is closed (so the file always matches
    # the view) and keeps the index of the write-ahead log in memory instead of in a mapped file.
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    # The header may be older than the newest page in the write-ahead log.
    _refuse_newer(path, format_version(db))
    try:
        problem = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
    except UnicodeDecodeError:
        problem = "SQLite cannot describe the damage"
    if problem != "ok":
        raise damaged(path, " ".join(problem.split()))


def _prepare(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA foreign_keys = ON")
    # A deleted user's verifier must not stay readable in a free page.
    db.execute("PRAGMA secure_delete = ON")
    if format_version(db) < len(MIGRATIONS):
        with transaction(db):
            is_new = format_version(db) == 0
            upgrade(db)
            if is_new:
                # Kafka draws cluster ids and topic ids from the same Uuid.randomUuid.
                db.execute("INSERT INTO cluster VALUES (1, ?, 0)", (TopicId.random().text,))
        # The header must have the actual format, for earlier releases of Ottla that open this file.
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _sentence(path: Path, error: sqlite3.Error | StorageError) -> str:
    reason = error.__cause__ if isinstance(error, StorageError) else error
    # The low byte is the primary code, the rest identifies variants.
    code = getattr(reason, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_BUSY:
        return f"{path} is in use by another process"
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return str(damaged(path, reason))
    return f"{path} cannot be used: {reason}"
