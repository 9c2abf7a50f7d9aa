"""Writes a micro-batch to a database with any Python driver: atomically, and exactly once."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.columns.types import shown
from ottla.spark.pipelines.changes.rules import DELETE, null_key
from ottla.spark.pipelines.databases.statements import (
    create,
    create_batches,
    delete,
    keep_batch,
    last_batch,
    name,
    upsert,
)
from ottla.spark.pipelines.evolution.conforming import frame_columns
from ottla.spark.pipelines.evolution.deciding import evolution_for
from ottla.spark.pipelines.sinks.batch import RefusedRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from ottla.spark.pipelines.databases.interface import Cursor, Dialect
    from ottla.spark.pipelines.sinks.batch import MicroBatch
    from ottla.spark.pipelines.sinks.databases import DatabaseSink

_ROWS_AT_ONCE: Final = 1000
_SAVEPOINT: Final = "ottla_rows"


class _Statement(NamedTuple):
    text: str
    columns: list[str]
    """Whose values it takes."""


class BatchWriting:
    """Writes one micro-batch in the cursor's transaction. Rows pass through the Spark driver in chunks."""

    def __init__(self, cursor: Cursor, sink: DatabaseSink, dialect: Dialect) -> None:
        self._cursor = cursor
        self._sink = sink
        self._dialect = dialect

    def write_once(self, frame: DataFrame, batch: MicroBatch) -> int:
        mark = self._dialect.placeholder
        self._cursor.execute(create_batches())
        self._cursor.execute(last_batch(mark), (batch.query,))
        last = self._cursor.fetchone()
        if last is not None and last[0] >= batch.number:
            return 0
        self._evolve(frame)
        if self._sink.mode == "complete":
            self._cursor.execute(f"DELETE FROM {name(self._sink.table)}")  # noqa: S608 - quoted
        statements = self._statements(frame)
        count = 0
        bad: list[RefusedRow] = []
        for rows in _some_at_a_time(self._last_rows(frame).toLocalIterator()):
            upserts, deletes = _parted([row.asDict() for row in rows])
            for statement, some in zip(statements, (upserts, deletes), strict=True):
                count += self._apply(statement, self._without_faults(some, bad), bad)
        if bad:
            batch.refuse(bad)
        self._cursor.execute(keep_batch(mark), (batch.query, batch.number))
        return count

    def _statements(self, frame: DataFrame) -> tuple[_Statement, _Statement]:
        """Statements for upserts and for deletes."""
        table, key, mark, order_by = self._sink.table, self._sink.key, self._dialect.placeholder, self._sink.order_by
        columns = frame_columns(frame).names
        found = [*key, order_by] if order_by is not None else list(key)
        return (
            _Statement(upsert(table, columns, key, mark, order_by), columns),
            _Statement(delete(table, key, mark, order_by), found),
        )

    def _last_rows(self, frame: DataFrame) -> DataFrame:
        """Upserts alone are executed in order; mixed with deletes, only the last change of each key is."""
        if DELETE not in frame.columns and self._sink.order_by is None:
            return frame.select(*(f"`{name}`" for name in frame_columns(frame).names)) if self._sink.key else frame
        from ottla.spark.pipelines.changes.marking import last_per_key

        return last_per_key(frame, self._sink.changes)

    def _evolve(self, frame: DataFrame) -> None:
        table = self._sink.table
        query = frame_columns(frame)
        found = self._dialect.columns(self._cursor, table)
        evolution = evolution_for(self._sink, found, query)
        if found is None:
            columns = [(each.name, self._dialect.type_of(shown(each.type))) for each in evolution.columns.fields]
            self._cursor.execute(create(table, columns, self._sink.key))
        self._dialect.change(self._cursor, table, evolution)

    def _without_faults(self, rows: list[dict[str, Any]], bad: list[RefusedRow]) -> list[dict[str, Any]]:
        good = []
        for row in rows:
            reason = self._fault(row)
            if reason is None:
                good.append(row)
            else:
                bad.append(RefusedRow(row, reason))
        return good

    def _fault(self, row: dict[str, Any]) -> str | None:
        if (lacking := null_key(row, self._sink.key)) is not None:
            return lacking
        for column, value in row.items():
            fault = self._dialect.fault_of(value)
            if fault is not None:
                return f"column {column}: {fault}"
        return None

    def _apply(self, statement: _Statement, rows: list[dict[str, Any]], bad: list[RefusedRow]) -> int:
        """Execute all rows together; one by one only if the database rejects one of them."""
        if not rows:
            return 0
        error = self._attempt(statement, rows)
        if error is None:
            return len(rows)
        if len(rows) == 1:
            bad.append(RefusedRow(rows[0], " ".join(str(error).split())))
            return 0
        half = len(rows) // 2
        return self._apply(statement, rows[:half], bad) + self._apply(statement, rows[half:], bad)

    def _attempt(self, statement: _Statement, rows: list[dict[str, Any]]) -> Exception | None:
        value_of = self._dialect.value_of
        self._cursor.execute(f"SAVEPOINT {_SAVEPOINT}")
        try:
            values = [[value_of(row[name]) for name in statement.columns] for row in rows]
            self._cursor.executemany(statement.text, values)
        except self._dialect.row_errors as refused:
            self._cursor.execute(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
            return refused
        finally:
            self._cursor.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")
        return None


def _some_at_a_time(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        yield some


def _parted(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Upserts and deletes."""
    upserts: list[dict[str, Any]] = []
    deletes: list[dict[str, Any]] = []
    for row in rows:
        (deletes if row.pop(DELETE, False) else upserts).append(row)
    return upserts, deletes
