"""Records as rows, in Spark: the part that differs between formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from ottla.columns.ddl import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ottla.spark.pipelines.definition import Source

PARSED: Final = "_parsed"
CORRUPT: Final = "_corrupt"
"""The field in which Spark's parsers put a value that does not fit."""
TASK: Final = "_task"


class Parser:
    """Of one source. `parse` adds the columns that the other methods use."""

    hidden: tuple[str, ...] = ()
    """Columns of `rows` that are not part of a row."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.schema = source.schema or ""

    def parse(self, raw: DataFrame) -> DataFrame:
        """The records with the columns `_parsed` and `_task`."""
        parsed = self.source.format.parsed(F.col("value"), self.schema)
        return raw.withColumns({PARSED: parsed, TASK: F.spark_partition_id()})

    def fails(self) -> Column:
        """Whether a record with a value does not parse."""
        return F.col(PARSED).isNull()

    def reason(self) -> Column:
        """Why it does not."""
        fault = self.source.format.fault(self.schema)
        # A plain function: of one with types Spark wants to know whether it is for columns of pandas.
        return F.udf(lambda value, nulls: fault(value, nulls), "string")(F.col("value"), self.null_columns())  # noqa: PLW0108

    def null_columns(self) -> Column:
        """The names of columns that are null: those that the parser refused are among them."""
        names = self.source.format.columns(self.schema) or {}
        empty = [F.when(F.col(f"{PARSED}.`{name}`").isNull(), F.lit(name)) for name in names if "`" not in name]
        return F.array_compact(F.array(*empty))

    def value_of(self, column: str) -> Column:
        """A column of the row."""
        return F.col(f"{PARSED}.{quoted(column)}")

    def event_time(self, column: str) -> Column:
        """The column by which a record may be too far in the future; null if the record is not judged."""
        return self.value_of(column)

    def rows(self) -> list[Column | str]:
        """All columns of the row."""
        return [f"{PARSED}.*"]


class TextParser(Parser):
    """By Spark's own parsers of JSON and CSV, which put a value that does not fit into a separate field."""

    hidden: tuple[str, ...] = (CORRUPT,)

    def fails(self) -> Column:
        return F.col(PARSED).isNull() | F.col(f"{PARSED}.{CORRUPT}").isNotNull()


def with_corrupt(schema: str) -> str:
    return f"{schema}, {CORRUPT} string"


def text_options(options: dict[str, str]) -> dict[str, str]:
    return {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
