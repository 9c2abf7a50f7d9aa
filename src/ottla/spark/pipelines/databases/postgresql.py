"""A table of a PostgreSQL database, with the package psycopg."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.columns.evolution import AddColumn
from ottla.columns.types import shown
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.databases.catalog import postgres_columns
from ottla.spark.pipelines.databases.statements import add_column, postgres_type, widen_column
from ottla.spark.pipelines.databases.values import as_json, is_nested
from ottla.spark.pipelines.databases.writing import BatchWriting

if TYPE_CHECKING:
    from types import ModuleType

    from pyspark.sql import DataFrame

    from ottla.columns.evolution import Evolution, TableColumns
    from ottla.spark.pipelines.databases.interface import Cursor
    from ottla.spark.pipelines.sinks.batch import MicroBatch
    from ottla.spark.pipelines.sinks.postgresql import PostgresqlSink


class PostgresDatabase:
    def __init__(self, sink: PostgresqlSink) -> None:
        self._sink = sink

    def columns(self) -> TableColumns | None:
        psycopg = imported_psycopg()
        try:
            with psycopg.connect(self._sink.url) as connection, connection.cursor() as cursor:
                return postgres_columns(cursor, self._sink.table)
        except psycopg.OperationalError as away:
            raise ConfigError(f"[sink.{self._sink.name}]: could not connect to the database: {away}") from None

    def write(self, frame: DataFrame, batch: MicroBatch) -> int:
        psycopg = imported_psycopg()
        # The block commits at its end, and rolls back if it is left by an error.
        with psycopg.connect(self._sink.url) as connection, connection.cursor() as cursor:
            cursor.execute("SET TIME ZONE 'UTC'")
            dialect = PostgresDialect((psycopg.DataError, psycopg.IntegrityError))
            return BatchWriting(cursor, self._sink, dialect).write_once(frame, batch)


class PostgresDialect:
    placeholder = "%s"

    def __init__(self, row_errors: tuple[type[Exception], ...]) -> None:
        self.row_errors = row_errors

    def type_of(self, spark_type: str) -> str:
        return postgres_type(spark_type)

    def value_of(self, value: object) -> object:
        if is_nested(value):
            return as_json(value)
        return bytes(value) if isinstance(value, bytearray) else value

    def fault_of(self, value: object) -> str | None:
        has_nul = isinstance(value, str) and "\x00" in value
        return "PostgreSQL cannot store a NUL character in text" if has_nul else None

    def columns(self, cursor: Cursor, table: str) -> TableColumns | None:
        return postgres_columns(cursor, table)

    def change(self, cursor: Cursor, table: str, evolution: Evolution) -> None:
        for change in evolution.changes:
            [column] = change.path
            if isinstance(change, AddColumn):
                cursor.execute(add_column(table, column, postgres_type(shown(change.type))))
            else:
                cursor.execute(widen_column(table, column, postgres_type(shown(change.after))))


def imported_psycopg() -> ModuleType:
    try:
        import psycopg
    except ImportError:
        raise ConfigError("a postgresql sink needs the package psycopg; run: pip install 'ottla[pipelines]'") from None
    module: ModuleType = psycopg
    return module
