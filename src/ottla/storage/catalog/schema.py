"""The tables of catalog.sqlite, and migrations of earlier formats.

The format is SQLite's user_version: the number of MIGRATIONS applied to the file. Once released, a
migration is never edited; a new format adds one at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

APPLICATION_ID: Final = int.from_bytes(b"Ottl")
"""SQLite's application id, in the file header."""

MIGRATIONS: Final[Sequence[Sequence[str]]] = (
    (
        # One row. SQLite's AUTOINCREMENT would allocate ids one at a time; a block is one update.
        """CREATE TABLE cluster (
            only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
            id TEXT NOT NULL,
            next_producer_id INTEGER NOT NULL
        )""",
        """CREATE TABLE topic (
            id BLOB PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            partitions INTEGER NOT NULL CHECK (partitions >= 1),
            is_internal INTEGER NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE topic_config (
            topic_id BLOB NOT NULL REFERENCES topic (id) ON DELETE CASCADE,
            key TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (topic_id, key)
        ) WITHOUT ROWID""",
        """CREATE TABLE scram_credential (
            user TEXT NOT NULL,
            mechanism INTEGER NOT NULL,
            salt BLOB NOT NULL,
            iterations INTEGER NOT NULL,
            stored_key BLOB NOT NULL,
            server_key BLOB NOT NULL,
            PRIMARY KEY (user, mechanism)
        ) WITHOUT ROWID""",
        """CREATE TABLE acl (
            resource_type INTEGER NOT NULL,
            resource_name TEXT NOT NULL,
            pattern_type INTEGER NOT NULL,
            principal TEXT NOT NULL,
            host TEXT NOT NULL,
            operation INTEGER NOT NULL,
            permission INTEGER NOT NULL,
            PRIMARY KEY (resource_type, resource_name, pattern_type, principal, host, operation, permission)
        ) WITHOUT ROWID""",
        # `entity` is JSON, sorted: {"client-id": null, "user": "ann"}. Columns could not distinguish "no client id
        # given" from "the default client id" without giving NULL or some name a second meaning.
        """CREATE TABLE quota (
            entity TEXT NOT NULL,
            key TEXT NOT NULL,
            value REAL NOT NULL,
            PRIMARY KEY (entity, key)
        ) WITHOUT ROWID""",
        """CREATE TABLE resource_config (
            scope INTEGER NOT NULL,
            name TEXT NOT NULL,
            key TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (scope, name, key)
        ) WITHOUT ROWID""",
    ),
    (
        # In an encrypted folder: detects changes made without the keys.
        """CREATE TABLE seal (
            only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
            key_id INTEGER NOT NULL,
            code BLOB NOT NULL
        )""",
    ),
    (
        # `renewers` is a JSON list of principals; times are milliseconds.
        """CREATE TABLE delegation_token (
            id TEXT PRIMARY KEY,
            owner TEXT NOT NULL,
            requester TEXT NOT NULL,
            renewers TEXT NOT NULL,
            issued_ms INTEGER NOT NULL,
            expires_ms INTEGER NOT NULL,
            max_ms INTEGER NOT NULL
        ) WITHOUT ROWID""",
    ),
    # Milliseconds; NULL for never.
    ("ALTER TABLE scram_credential ADD COLUMN expires_ms INTEGER",),
)


def format_version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def upgrade(db: sqlite3.Connection, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Apply migrations inside the caller's transaction, so that a crash leaves the old format intact."""
    for migration in migrations[format_version(db) :]:
        for statement in migration:
            db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {len(migrations)}")
