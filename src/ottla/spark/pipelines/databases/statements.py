"""The SQL of database sinks. Pure rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCHES: Final = "ottla_batches"
COLUMNS: Final = "ottla_columns"
"""Spark types in SQLite, which has only four."""
_SQLITE_TYPES: Final = {
    "boolean": "INTEGER", "tinyint": "INTEGER", "smallint": "INTEGER", "int": "INTEGER", "bigint": "INTEGER",
    "float": "REAL", "double": "REAL", "binary": "BLOB",
}  # fmt: skip
_POSTGRES_TYPES: Final = {
    "boolean": "boolean", "tinyint": "smallint", "smallint": "smallint", "int": "integer", "bigint": "bigint",
    "float": "real", "double": "double precision", "binary": "bytea", "date": "date", "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp", "string": "text",
}  # fmt: skip


def sqlite_type(spark_type: str) -> str:
    return _SQLITE_TYPES.get(spark_type, "TEXT")


def postgres_type(spark_type: str) -> str:
    if spark_type.startswith("decimal"):
        return spark_type.replace("decimal", "numeric")
    return _POSTGRES_TYPES.get(spark_type, "jsonb")


def name(*parts: str) -> str:
    """A name in quotes; one with a dot is a schema and a table."""
    return ".".join('"' + each.replace('"', '""') + '"' for part in parts for each in part.split("."))


def create(table: str, columns: Sequence[tuple[str, str]], key: Sequence[str]) -> str:
    missing = [column for column in key if column not in dict(columns)]
    if missing:
        raise ConfigError(f"key: there is no column {', '.join(missing)}; there are {', '.join(dict(columns))}")
    parts = [f"{name_of(column)} {kind}" for column, kind in columns]
    if key:
        parts.append(f"PRIMARY KEY ({', '.join(map(name_of, key))})")
    return f"CREATE TABLE IF NOT EXISTS {name(table)} ({', '.join(parts)})"


def add_column(table: str, column: str, kind: str) -> str:
    return f"ALTER TABLE {name(table)} ADD COLUMN {name_of(column)} {kind}"


def widen_column(table: str, column: str, kind: str) -> str:
    return f"ALTER TABLE {name(table)} ALTER COLUMN {name_of(column)} TYPE {kind}"


def create_columns() -> str:
    return (
        f"CREATE TABLE IF NOT EXISTS {COLUMNS} (table_name TEXT, column_name TEXT, type TEXT, "
        "PRIMARY KEY (table_name, column_name))"
    )


def keep_column() -> str:
    return f"INSERT OR REPLACE INTO {COLUMNS} (table_name, column_name, type) VALUES (?, ?, ?)"  # noqa: S608 - ours


def name_of(column: str) -> str:
    """A quoted column name; a dot is part of the name."""
    return '"' + column.replace('"', '""') + '"'


def upsert(
    table: str, columns: Sequence[str], key: Sequence[str], placeholder: str, order_by: str | None = None
) -> str:
    """Insert rows; replace rows with the same key unless the stored row is newer."""
    values = ", ".join([placeholder] * len(columns))
    text = f"INSERT INTO {name(table)} ({', '.join(map(name_of, columns))}) VALUES ({values})"  # noqa: S608 - quoted
    if not key:
        return text
    others = [column for column in columns if column not in key]
    changes = ", ".join(f"{name_of(column)} = excluded.{name_of(column)}" for column in others)
    action = f"DO UPDATE SET {changes}" if others else "DO NOTHING"
    if order_by is not None:
        stored, given = f"{name_of(table.rpartition('.')[2])}.{name_of(order_by)}", f"excluded.{name_of(order_by)}"
        action += f" WHERE {stored} IS NULL OR {given} >= {stored}"
    return f"{text} ON CONFLICT ({', '.join(map(name_of, key))}) {action}"


def delete(table: str, key: Sequence[str], placeholder: str, order_by: str | None = None) -> str:
    """Delete the row of a key, unless it is newer than the delete."""
    conditions = [f"{name_of(column)} = {placeholder}" for column in key]
    if order_by is not None:
        conditions.append(f"({name_of(order_by)} IS NULL OR {name_of(order_by)} <= {placeholder})")
    return f"DELETE FROM {name(table)} WHERE {' AND '.join(conditions)}"  # noqa: S608 - quoted


def create_batches() -> str:
    return f"CREATE TABLE IF NOT EXISTS {BATCHES} (query TEXT PRIMARY KEY, batch BIGINT NOT NULL)"


def last_batch(placeholder: str) -> str:
    return f"SELECT batch FROM {BATCHES} WHERE query = {placeholder}"  # noqa: S608 - a name of ours


def keep_batch(placeholder: str) -> str:
    return (
        f"INSERT INTO {BATCHES} (query, batch) VALUES ({placeholder}, {placeholder}) "  # noqa: S608 - a name of ours
        "ON CONFLICT (query) DO UPDATE SET batch = excluded.batch"
    )
