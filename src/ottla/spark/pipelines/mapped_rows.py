"""Functions of a step over Arrow or pandas, in Spark's workers; their results have the columns of a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ottla.spark.pipelines.definition import RowFunction


def mapped(rows: DataFrame, rule: RowFunction, function: Callable[[Any], Any]) -> DataFrame:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    schema = to_arrow_schema(StructType.fromDDL(rule.schema), timezone="UTC")
    name = f"{rule.function.file.name}:{rule.function.function}"
    if rule.is_pandas:
        return rows.mapInArrow(OfArrow(OfPandas(function, name), name, schema), rule.schema)
    return rows.mapInArrow(OfArrow(function, name, schema), rule.schema)


class OfArrow:
    """Called by Spark with batches of rows."""

    def __init__(self, function: Callable[[pa.Table], pa.Table], name: str, schema: pa.Schema) -> None:
        self._function = function
        self._name = name
        self._schema = schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            yield from self._conformed(self._function(pa.Table.from_batches([batch]))).to_batches()

    def _conformed(self, made: object) -> pa.Table:
        import pyarrow as pa

        if not isinstance(made, pa.Table):
            raise TypeError(f"{self._name} must return a pyarrow.Table, not {type(made).__name__}")
        columns = [self._column(made, field) for field in self._schema]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _column(self, made: pa.Table, field: pa.Field) -> pa.ChunkedArray:
        import pyarrow as pa

        if field.name not in made.column_names:
            raise ValueError(f"{self._name} returned no column {field.name} (columns: {', '.join(made.column_names)})")
        column = made.column(field.name)
        try:
            return column.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as refused:
            text = f"{self._name} returned {column.type} as column {field.name}, which does not fit {field.type}"
            raise ValueError(f"{text}: {refused}") from None


class OfPandas:
    """A function of pandas DataFrames as a function of Arrow tables."""

    def __init__(self, function: Callable[[Any], Any], name: str) -> None:
        self._function = function
        self._name = name

    def __call__(self, rows: pa.Table) -> pa.Table:
        import pyarrow as pa

        given = rows.to_pandas()
        made = self._function(given)
        if not isinstance(made, type(given)):
            raise TypeError(f"{self._name} must return a pandas.DataFrame, not {type(made).__name__}")
        return pa.Table.from_pandas(made, preserve_index=False)
