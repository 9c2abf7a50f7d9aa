"""Finds unknown columns in a pipeline's file, as far as possible without Spark. Pure rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.columns.ddl import columns
from ottla.core.closest import suggestion
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.known_columns import beside_columns, known_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.spark.pipelines.definition import Source, Step
    from ottla.spark.pipelines.fields import Mistakes
    from ottla.spark.pipelines.sinks.sink import Sink

_HIDDEN: Final = "_"


def check_columns(
    sources: Mapping[str, Source], steps: Iterable[Step], sinks: Iterable[Sink], mistakes: Mistakes
) -> None:
    """Checks sources with a schema and their deduplication; only Spark knows the columns that SQL and Python return."""
    known = {name: _of_source(source) for name, source in sources.items()}
    for step in steps:
        if step.rows is not None:
            known[step.name] = _of_schema(step.rows.schema)
            continue
        rule = step.deduplicate
        if rule is None or (columns := known.get(rule.of)) is None:
            continue
        known[step.name] = columns
        for problem in unknown_columns(rule.keys, columns):
            mistakes.add(("step", step.name, "deduplicate"), f"keys: {problem}")
    for sink in sinks:
        if (columns := known.get(sink.of)) is None:
            continue
        for key, names in sink.named_columns().items():
            for problem in unknown_columns(names, _shown(columns)):
                mistakes.add(("sink", sink.name, key), problem)


def unknown_columns(names: Iterable[str], columns: Iterable[str]) -> list[str]:
    """An error for each name that is not a column; case-insensitive, as in Spark."""
    there = list(columns)
    lower = {column.lower() for column in there}
    return [
        f"there is no column {name}{suggestion(name, there)} (columns: {', '.join(there)})"
        for name in names
        if name.lower() not in lower
    ]


def _of_source(source: Source) -> list[str] | None:
    try:
        columns = known_columns(source)
    except ConfigError:
        return None
    return None if columns is None else [*columns, *beside_columns(source)]


def _of_schema(schema: str) -> list[str] | None:
    try:
        return list(columns(schema))
    except ConfigError:
        return None


def _shown(columns: Iterable[str]) -> list[str]:
    return [column for column in columns if not column.startswith(_HIDDEN)]
