"""The interface of databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from ottla.columns.evolution import Evolution, TableColumns
    from ottla.spark.pipelines.sinks.batch import MicroBatch


class Cursor(Protocol):
    """A cursor of Python's database API."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Self: ...
    def executemany(self, sql: str, rows: Sequence[Sequence[Any]], /) -> Self: ...
    def fetchone(self) -> tuple[Any, ...] | None: ...
    def fetchall(self) -> list[Any]: ...


class Database(Protocol):
    def columns(self) -> TableColumns | None:
        """The current columns of the table; None if the table does not exist."""

    def write(self, frame: DataFrame, batch: MicroBatch) -> int:
        """Write a micro-batch to the table, unless it is already there; returns the number of rows."""


class Dialect(Protocol):
    """The differences between databases."""

    placeholder: str
    row_errors: tuple[type[Exception], ...]
    """Errors of a row that cannot be written, as opposed to errors of the connection."""

    def type_of(self, spark_type: str) -> str: ...

    def value_of(self, value: object) -> object: ...

    def fault_of(self, value: object) -> str | None:
        """Why a value cannot be stored in any column; None if it can."""

    def columns(self, cursor: Cursor, table: str) -> TableColumns | None: ...

    def change(self, cursor: Cursor, table: str, evolution: Evolution) -> None:
        """Change the columns of the table, in the cursor's transaction."""
