"""The error for an unsupported schema change: both schemas side by side, and possible remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.columns.ddl import quoted
from ottla.columns.types import shown
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from ottla.columns.abilities import Abilities
    from ottla.columns.evolution import ColumnMismatch, Evolution
    from ottla.columns.types import Struct
    from ottla.spark.pipelines.sinks.stored import StoredSink

_ABSENT: Final = "-"
_LONGEST: Final = 60


def refuse(sink: StoredSink, table: Struct, query: Struct, evolution: Evolution, abilities: Abilities) -> None:
    """Raise if something does not fit."""
    if evolution.misfits:
        policy = f'(evolution = "{sink.evolution}")'
        head = f"[sink.{sink.name}]: the columns do not fit {abilities.title} at {sink.place} {policy}"
        raise ConfigError("\n".join([head, *_beside(table, query, evolution), _ways_out(sink, evolution)]))


def _beside(table: Struct, query: Struct, evolution: Evolution) -> list[str]:
    reasons: dict[str, ColumnMismatch] = {each.column.partition(".")[0]: each for each in evolution.misfits}
    rows = [("column", "table", "query", "")]
    for name in dict.fromkeys([*table.names, *query.names]):
        have, want = (_ABSENT if kind is None else _cut(shown(kind)) for kind in (table.get(name), query.get(name)))
        why = reasons.get(name)
        nested = f"{why.column}: " if why is not None and why.column != name else ""
        rows.append((name, have, want, f"<- {nested}{why.reason}" if why is not None else ""))
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    return ["  " + "  ".join([*(row[at].ljust(widths[at]) for at in range(3)), row[3]]).rstrip() for row in rows]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _ways_out(sink: StoredSink, evolution: Evolution) -> str:
    ways = [
        f"cast in a step: SELECT CAST({quoted(each.column)} AS {each.cast_to}) AS {quoted(each.column)}"
        for each in evolution.misfits
        if each.cast_to and "." not in each.column and "<" not in each.cast_to
    ]
    if any('"widen"' in each.reason for each in evolution.misfits):
        ways.append(f'set evolution = "widen" in [sink.{sink.name}]')
    if any("rename" in each.reason for each in evolution.misfits):
        ways.append("keep the old name (SELECT … AS old), or drop the old column in one run and add the new one later")
    ways.append("write to a new table: give the sink another name and place, and fill it with ottla pipeline backfill")
    return "Ways out: " + "; ".join(ways)
