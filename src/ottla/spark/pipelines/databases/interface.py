"""What a database must be able to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.spark.pipelines.evolution.rules import Evolution, TableColumns
    from ottla.spark.pipelines.sinks.batch import MicroBatch


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

    def value_of(self, value: Any) -> Any: ...  # noqa: ANN401 - of a row

    def fault_of(self, value: Any) -> str | None:  # noqa: ANN401 - of a row
        """Why a value can be in no column at all."""

    def columns(self, cursor: Any, table: str) -> TableColumns | None: ...  # noqa: ANN401 - the driver's own

    def change(self, cursor: Any, table: str, evolution: Evolution) -> None:  # noqa: ANN401 - the driver's own
        """Change the columns of the table, in the transaction that the cursor is in."""
