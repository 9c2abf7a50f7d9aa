"""The decision for one sink, from its table as it is now."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.spark.pipelines.definition import DATABASE_KINDS, TABLE_KINDS
from ottla.spark.pipelines.evolution.abilities import ABILITIES
from ottla.spark.pipelines.evolution.refusals import refuse
from ottla.spark.pipelines.evolution.rules import Evolution, decide
from ottla.spark.pipelines.evolution.types import struct_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from ottla.spark.pipelines.definition import Sink
    from ottla.spark.pipelines.evolution.rules import TableColumns
    from ottla.spark.pipelines.evolution.types import Struct


def evolution_for(
    sink: Sink, table: TableColumns | None, query: Struct, written_before: Collection[str] | None = ()
) -> Evolution:
    """What the sink's table needs to take the query's rows; raises with both schemas if it cannot."""
    abilities = ABILITIES[sink.kind]
    if table is None:
        return Evolution(abilities.stored_columns(query))
    if abilities.ignores_case:
        table = _respelled(table, query)
    needed = table.needed | {*sink.partition_by, *sink.key}
    evolution = decide(replace(table, needed=needed), query, sink.evolution, abilities, written_before)
    refuse(sink, table.columns, abilities.stored_columns(query), evolution, abilities)
    return evolution


def _respelled(table: TableColumns, query: Struct) -> TableColumns:
    """With the query's spelling of columns that are the same but for their case."""
    spelled = {name.lower(): name for name in query.names}
    fields = ((spelled.get(field.name.lower(), field.name), field.type) for field in table.columns.fields)
    return replace(table, columns=struct_of(fields))


def planned_evolution(sink: Sink, query: Struct, written_before: Collection[str] | None) -> Evolution | None:
    """The same before anything runs. None for sinks that have no columns, and for tables that do not exist yet."""
    if sink.kind in TABLE_KINDS:
        from ottla.spark.pipelines.tables.opening import table_of

        found = table_of(sink).columns()
    elif sink.kind in DATABASE_KINDS:
        from ottla.spark.pipelines.databases.opening import database_of

        found = database_of(sink).columns()
    else:
        return None
    return None if found is None else evolution_for(sink, found, query, written_before)
