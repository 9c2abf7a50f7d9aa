"""A table of a PostgreSQL database, by the package psycopg."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.databases.statements import postgres_type
from ottla.spark.pipelines.databases.writing import Dialect, as_json, is_nested, write_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.spark.pipelines.definition import Sink
    from ottla.spark.pipelines.tables.staging import BatchId


class PostgresDatabase:
    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, frame: DataFrame, batch: BatchId) -> int:
        psycopg = imported_psycopg()
        # The block commits at its end, and rolls back if it is left by an error.
        with psycopg.connect(self._sink.url) as connection, connection.cursor() as cursor:
            cursor.execute("SET TIME ZONE 'UTC'")
            return write_once(cursor, frame, self._sink, batch, _DIALECT)


def _value(value: Any) -> Any:  # noqa: ANN401 - of a row
    if is_nested(value):
        return as_json(value)
    return bytes(value) if isinstance(value, bytearray) else value


_DIALECT: Final = Dialect("%s", postgres_type, _value)


def imported_psycopg() -> Any:  # noqa: ANN401 - a module
    try:
        import psycopg
    except ImportError:
        raise ConfigError("a postgresql sink needs the package psycopg; run: pip install 'ottla[pipelines]'") from None
    return psycopg
