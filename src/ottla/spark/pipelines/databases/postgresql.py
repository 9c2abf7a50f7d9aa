"""A table of a PostgreSQL database, by the package psycopg."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.databases.catalog import postgres_columns
from ottla.spark.pipelines.databases.statements import add_column, postgres_type, widen_column
from ottla.spark.pipelines.databases.values import as_json, is_nested
from ottla.spark.pipelines.databases.writing import BatchWriting
from ottla.spark.pipelines.evolution.rules import AddColumn
from ottla.spark.pipelines.evolution.types import shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.spark.pipelines.evolution.rules import Evolution, TableColumns
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

    def value_of(self, value: Any) -> Any:  # noqa: ANN401 - of a row
        if is_nested(value):
            return as_json(value)
        return bytes(value) if isinstance(value, bytearray) else value

    def fault_of(self, value: Any) -> str | None:  # noqa: ANN401 - of a row
        has_nul = isinstance(value, str) and "\x00" in value
        return "PostgreSQL cannot store a NUL character in text" if has_nul else None

    def columns(self, cursor: Any, table: str) -> TableColumns | None:  # noqa: ANN401 - psycopg's own
        return postgres_columns(cursor, table)

    def change(self, cursor: Any, table: str, evolution: Evolution) -> None:  # noqa: ANN401 - psycopg's own
        for change in evolution.changes:
            [column] = change.path
            if isinstance(change, AddColumn):
                cursor.execute(add_column(table, column, postgres_type(shown(change.type))))
            else:
                cursor.execute(widen_column(table, column, postgres_type(shown(change.after))))


def imported_psycopg() -> Any:  # noqa: ANN401 - a module
    try:
        import psycopg
    except ImportError:
        raise ConfigError("a postgresql sink needs the package psycopg; run: pip install 'ottla[pipelines]'") from None
    return psycopg
