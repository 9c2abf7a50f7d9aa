"""The rows of a micro-batch with exactly the columns and types of the table, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from ottla.columns.types import Array, Map, Struct, columns_of, shown

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ottla.columns.types import Field, Type


def frame_columns(frame: DataFrame) -> Struct:
    """Those that are stored: without columns that begin with _."""
    found = columns_of(frame.schema.jsonValue())
    return Struct(tuple(field for field in found.fields if not field.name.startswith("_")))


def conformed(frame: DataFrame, wanted: Struct, *beside: str) -> DataFrame:
    """`beside` names columns that are kept as they are."""
    given = frame_columns(frame)
    if given == wanted and frame.columns == [*wanted.names, *beside]:
        return frame
    return frame.select(*(_column(field, given).alias(field.name) for field in wanted.fields), *beside)


def _column(field: Field, given: Struct) -> Column:
    present = F.col("`" + field.name.replace("`", "``") + "`") if field.name in given.names else None
    return _converted(present, given.get(field.name), field.type)


def _converted(column: Column | None, given: Type | None, wanted: Type) -> Column:
    if column is None or given is None:
        return F.lit(None).cast(ddl_of(wanted))
    if given == wanted:
        return column
    if isinstance(given, Struct) and isinstance(wanted, Struct):
        return _struct(column, given, wanted)
    if isinstance(given, Array) and isinstance(wanted, Array):
        one, other = given.element, wanted.element
        return F.transform(column, lambda each: _converted(each, one, other))
    if isinstance(given, Map) and isinstance(wanted, Map):
        value, new = given.value, wanted.value
        return F.transform_values(column, lambda _, each: _converted(each, value, new))
    return column.cast(ddl_of(wanted))


def _struct(column: Column, given: Struct, wanted: Struct) -> Column:
    fields = [
        _converted(column.getField(each.name) if each.name in given.names else None, given.get(each.name), each.type)
        .alias(each.name)
        for each in wanted.fields
    ]  # fmt: skip
    # A struct that is null stays so, and does not become one of nulls.
    return F.when(column.isNotNull(), F.struct(*fields))


def ddl_of(kind: Type) -> str:
    if isinstance(kind, Struct):
        inside = ",".join(f"`{each.name.replace('`', '``')}`:{ddl_of(each.type)}" for each in kind.fields)
        return f"struct<{inside}>"
    if isinstance(kind, Array):
        return f"array<{ddl_of(kind.element)}>"
    if isinstance(kind, Map):
        return f"map<{ddl_of(kind.key)},{ddl_of(kind.value)}>"
    return shown(kind)
