"""A table of a SQLite file, on the driver's machine."""

from __future__ import annotations

import datetime as dt
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.pipelines.databases.statements import sqlite_type
from ottla.spark.pipelines.databases.writing import Dialect, as_json, is_nested, write_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.spark.pipelines.definition import Sink
    from ottla.spark.pipelines.tables.staging import BatchId

_PATIENCE_S: Final = 60.0


class SqliteDatabase:
    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, frame: DataFrame, batch: BatchId) -> int:
        Path(self._sink.path).parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._sink.path, timeout=_PATIENCE_S, isolation_level=None)) as connection:
            cursor = connection.cursor()
            # Before anything is read, so that two pipelines do not both find that a batch is missing.
            cursor.execute("BEGIN IMMEDIATE")
            try:
                count = write_once(cursor, frame, self._sink, batch, _DIALECT)
            except BaseException:
                cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")
            return count


def _value(value: Any) -> Any:  # noqa: ANN401 - of a row
    if is_nested(value):
        return as_json(value)
    if isinstance(value, dt.datetime | dt.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return bytes(value) if isinstance(value, bytearray) else value


_DIALECT: Final = Dialect("?", sqlite_type, _value)
