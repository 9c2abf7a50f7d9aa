"""The decision for one sink, from its table as it is now."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.columns.evolution import Evolution, decide
from ottla.columns.types import struct_of
from ottla.spark.pipelines.evolution.refusals import refuse
from ottla.spark.pipelines.sinks.stored import StoredSink

if TYPE_CHECKING:
    from collections.abc import Collection

    from ottla.columns.evolution import TableColumns
    from ottla.columns.types import Struct
    from ottla.spark.pipelines.sinks.sink import Sink


def evolution_for(
    sink: StoredSink, table: TableColumns | None, query: Struct, written_before: Collection[str] | None = ()
) -> Evolution:
    """The changes that the sink's table needs for the query's rows; raises with both schemas if impossible."""
    abilities = sink.abilities
    if table is None:
        return Evolution(abilities.stored_columns(query))
    if abilities.ignores_case:
        table = _respelled(table, query)
    needed = table.needed | sink.needed_columns
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
    if not isinstance(sink, StoredSink):
        return None
    found = sink.columns()
    return None if found is None else evolution_for(sink, found, query, written_before)
