"""The columns of an existing table, from the database's own catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.columns.abilities import ANY, JSON
from ottla.columns.evolution import TableColumns
from ottla.columns.types import struct_of
from ottla.spark.pipelines.databases.statements import COLUMNS, name, sqlite_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.spark.pipelines.databases.interface import Cursor

_POSTGRES: Final = {
    "boolean": "boolean", "smallint": "smallint", "integer": "int", "bigint": "bigint", "real": "float",
    "double precision": "double", "text": "string", "character varying": "string", "bytea": "binary", "date": "date",
    "timestamp with time zone": "timestamp", "timestamp without time zone": "timestamp_ntz", "jsonb": JSON,
    "json": JSON,
}  # fmt: skip
_POSTGRES_COLUMNS: Final = """
SELECT a.attname, format_type(a.atttypid, NULL), a.atttypmod, a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
FROM pg_attribute a WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""


def postgres_columns(cursor: Cursor, table: str) -> TableColumns | None:
    cursor.execute(_POSTGRES_COLUMNS, (name(table),))
    rows = cursor.fetchall()
    columns = struct_of((row[0], postgres_spark_type(row[1], row[2])) for row in rows)
    return TableColumns(columns, frozenset(row[0] for row in rows if row[3])) if rows else None


def postgres_spark_type(kind: str, modifier: int) -> str:
    """PostgreSQL packs precision and scale of numeric(p,s) into the type modifier, after four bytes of header."""
    if kind == "numeric" and modifier > 0:
        return f"decimal({(modifier - 4) >> 16},{(modifier - 4) & 0x7FF})"
    return _POSTGRES.get(kind, ANY)


def sqlite_columns(cursor: Cursor, table: str) -> TableColumns | None:
    found = cursor.execute(f"PRAGMA table_info({name(table)})").fetchall()
    kept: Mapping[str, str] = dict(
        cursor.execute(f"SELECT column_name, type FROM {COLUMNS} WHERE table_name = ?", (table,)).fetchall()  # noqa: S608
        if cursor.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (COLUMNS,)).fetchone()
        else ()
    )
    columns = struct_of((row[1], _sqlite_spark_type(kept.get(row[1]), row[2])) for row in found)
    needed = frozenset(row[1] for row in found if row[3] and row[4] is None)
    return TableColumns(columns, needed) if found else None


def _sqlite_spark_type(kept: str | None, declared: str) -> str:
    """SQLite has only four types, so the pipeline stores Spark's; a column that was altered since may have any type."""
    if kept is None:
        return ANY
    return kept if declared.upper() == sqlite_type(kept) else ANY
