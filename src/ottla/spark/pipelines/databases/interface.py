"""What a database must be able to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from ottla.columns.evolution import Evolution, TableColumns
    from ottla.spark.pipelines.sinks.batch import MicroBatch


class Cursor(Protocol):
    """As of Python's database API."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Self: ...
    def executemany(self, sql: str, rows: Sequence[Sequence[Any]], /) -> Self: ...
    def fetchone(self) -> tuple[Any, ...] | None: ...
    def fetchall(self) -> list[Any]: ...


class Database(Protocol):
    def columns(self) -> TableColumns | None:
        """The columns that the table has now; None if there is no such table yet."""

    def write(self, frame: DataFrame, batch: MicroBatch) -> int:
        """Put a micro-batch into the table, unless it is there; returns how many rows."""


class Dialect(Protocol):
    """What differs between databases."""

    placeholder: str
    row_errors: tuple[type[Exception], ...]
    """What is raised for a row that cannot be written, as opposed to a database that is away."""

    def type_of(self, spark_type: str) -> str: ...

    def value_of(self, value: object) -> object: ...

    def fault_of(self, value: object) -> str | None:
        """Why a value cannot be stored in any column."""

    def columns(self, cursor: Cursor, table: str) -> TableColumns | None: ...

    def change(self, cursor: Cursor, table: str, evolution: Evolution) -> None:
        """Change the columns of the table, in the transaction that the cursor is in."""
