"""A table of a SQLite file, on the driver's machine."""

from __future__ import annotations

import datetime as dt
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.columns.evolution import AddColumn
from ottla.columns.types import shown
from ottla.spark.pipelines.databases.catalog import sqlite_columns
from ottla.spark.pipelines.databases.statements import add_column, create_columns, keep_column, sqlite_type
from ottla.spark.pipelines.databases.values import as_json, is_nested
from ottla.spark.pipelines.databases.writing import BatchWriting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.columns.evolution import Evolution, TableColumns
    from ottla.spark.pipelines.databases.interface import Cursor
    from ottla.spark.pipelines.sinks.batch import MicroBatch
    from ottla.spark.pipelines.sinks.sqlite import SqliteSink

_PATIENCE_S: Final = 60.0


class SqliteDatabase:
    def __init__(self, sink: SqliteSink) -> None:
        self._sink = sink

    def columns(self) -> TableColumns | None:
        if not Path(self._sink.path).exists():
            return None
        with closing(sqlite3.connect(self._sink.path, timeout=_PATIENCE_S)) as connection:
            return sqlite_columns(connection.cursor(), self._sink.table)

    def write(self, frame: DataFrame, batch: MicroBatch) -> int:
        Path(self._sink.path).parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._sink.path, timeout=_PATIENCE_S, isolation_level=None)) as connection:
            cursor = connection.cursor()
            # Before anything is read, so that two pipelines do not both find that a batch is missing.
            cursor.execute("BEGIN IMMEDIATE")
            try:
                count = BatchWriting(cursor, self._sink, SqliteDialect()).write_once(frame, batch)
            except BaseException:
                cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")
            return count


class SqliteDialect:
    placeholder = "?"
    row_errors: tuple[type[Exception], ...] = (sqlite3.IntegrityError, sqlite3.DataError, OverflowError)

    def type_of(self, spark_type: str) -> str:
        return sqlite_type(spark_type)

    def value_of(self, value: object) -> object:
        if is_nested(value):
            return as_json(value)
        if isinstance(value, dt.datetime | dt.date):
            return value.isoformat()
        if isinstance(value, Decimal):
            return str(value)
        return bytes(value) if isinstance(value, bytearray) else value

    def fault_of(self, value: object) -> str | None:  # noqa: ARG002 - SQLite stores everything
        return None

    def columns(self, cursor: Cursor, table: str) -> TableColumns | None:
        return sqlite_columns(cursor, table)

    def change(self, cursor: Cursor, table: str, evolution: Evolution) -> None:
        for change in evolution.changes:
            if isinstance(change, AddColumn):
                cursor.execute(add_column(table, change.path[0], sqlite_type(shown(change.type))))
        before = sqlite_columns(cursor, table)
        if before is None or before.columns != evolution.columns:
            cursor.execute(create_columns())
            kept = [(table, field.name, shown(field.type)) for field in evolution.columns.fields]
            cursor.executemany(keep_column(), kept)
