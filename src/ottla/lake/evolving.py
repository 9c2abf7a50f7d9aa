"""A table follows the columns of its topic's values: new columns and wider types."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.columns.abilities import Abilities
from ottla.columns.arrow_types import arrow_columns
from ottla.columns.evolution import TableColumns, decide
from ottla.columns.types import struct_of
from ottla.lake.errors import LakeError
from ottla.lake.rows import table_schema

if TYPE_CHECKING:
    from ottla.columns.evolution import Evolution
    from ottla.columns.types import Struct
    from ottla.lake.topic_table import TopicTable

_log: Final = logging.getLogger(__name__)
_ABILITIES: Final = Abilities(title="an Iceberg table", can_widen=True, stored_as={"tinyint": "int", "smallint": "int"})


def evolve(table: TopicTable, columns: Struct) -> None:
    """Add and widen columns; raise LakeError for a change that is not safe."""
    wanted = _ABILITIES.stored_columns(arrow_columns(table_schema(columns)))
    evolution = decide(TableColumns(arrow_columns(table.arrow_schema())), wanted, "widen", _ABILITIES, ())
    if evolution.misfits:
        raise LakeError(_refusal(str(table.name), evolution))
    if evolution.changes:
        for line in map(str, evolution.changes):
            _log.info("%s: %s", table.name, line)
        table.change_columns(struct_of((each.name, each.type) for each in evolution.columns.fields))


def _refusal(table: str, evolution: Evolution) -> str:
    reasons = "; ".join(f"{each.column} {each.reason}" for each in evolution.misfits)
    return (
        f"{table}: the columns of the values do not fit the table: {reasons}; write to another namespace (--namespace)"
    )
