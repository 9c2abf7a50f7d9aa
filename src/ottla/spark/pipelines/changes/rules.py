"""Change rules of a table: key, delete condition, order. Pure rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.columns.types import shown
from ottla.core.closest import suggestion
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ottla.columns.types import Struct
    from ottla.spark.pipelines.definition import Pipeline
    from ottla.spark.pipelines.sinks.sink import Sink

DELETED: Final = "_deleted"
"""The column of a source's rows that marks deletes."""
DELETE: Final = "_ottla_delete"
"""The same once the sink has decided; it is never stored."""
ORIGIN: Final = ("_topic", "_partition", "_offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRule:
    """How the rows of a sink replace and delete others."""

    key: tuple[str, ...] = ()
    order_by: str | None = None
    """A stored row is only replaced or deleted by one whose value in this column is not smaller."""
    delete_when: str | None = None
    """A condition in SQL: rows for which it holds are deletes."""
    is_merge: bool = False
    """There is one stored row for each key."""
    keeps_deletes: bool = False
    """Deletes are shown like other rows."""


def check_columns(sink: Sink, columns: Struct) -> None:
    """Reject a key or an order column that the rows lack, or that cannot be compared."""
    rule = sink.changes
    for what, names in (("key", rule.key), ("order_by", (rule.order_by,) if rule.order_by else ())):
        for name in names:
            kind = columns.get(name)
            if kind is None:
                raise ConfigError(
                    f"[sink.{sink.name}] {what}: there is no column {name}{suggestion(name, columns.names)}"
                )
            if not isinstance(kind, str) or kind == "variant":
                text = f"column {name} is a {shown(kind)}, which cannot be compared"
                raise ConfigError(f"[sink.{sink.name}] {what}: {text}; select one of its fields with an alias")
            if what == "order_by" and (reason := sink.why_unordered(name, kind)) is not None:
                raise ConfigError(f"[sink.{sink.name}] {what}: {reason}")


def null_key(row: dict[str, object], key: Sequence[str]) -> str | None:
    """Why a row cannot be merged into any table."""
    return next((f"key column {name} is null" for name in key if row[name] is None), None)


def refuse_lost_deletes(pipeline: Pipeline, sink: Sink, columns: Collection[str]) -> None:
    """Reject steps that drop the column that marks deletes: deletes would be written as rows of nulls."""
    sources = [source.name for source in pipeline.sources.values() if source.has_deletes]
    if not sources or DELETED in columns or sink.changes.delete_when is not None:
        return
    # A Python step may handle deletes itself, and SQL that names the column does.
    if not any(step.python or step.rows or DELETED in (step.sql or "") for step in pipeline.steps):
        raise ConfigError(
            f"[sink.{sink.name}]: rows of {', '.join(sources)} may be deletes, and the steps drop the column {DELETED} "
            f"that says so. Select it too (SELECT …, {DELETED}), or leave deletes out (WHERE NOT {DELETED})"
        )


def appended_deletes(sink: Sink) -> ConfigError:
    """A sink without a key received deletes."""
    return ConfigError(
        f"[sink.{sink.name}]: rows of {sink.of} may be deletes (column {DELETED}), and the sink has no key. "
        f"Set key, or keep every change as a row: SELECT …, {DELETED} AS is_deleted in a step"
    )
