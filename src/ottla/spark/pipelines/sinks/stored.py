"""Sinks that store rows in a table with columns, which follows the columns of the query."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ottla.columns.abilities import Abilities
from ottla.columns.evolution import EvolutionPolicy
from ottla.spark.pipelines.sinks.sink import Sink

if TYPE_CHECKING:
    from ottla.columns.evolution import TableColumns
    from ottla.spark.pipelines.fields import Fields


class StoredSink(Sink, frozen=True, kw_only=True):
    evolution: EvolutionPolicy = "add"
    """How far its table follows the columns of the query: new columns, wider types too, or not at all."""

    abilities: ClassVar[Abilities]

    def columns(self) -> TableColumns | None:
        """The columns that the table has now; None if there is no such table yet."""
        raise NotImplementedError(f"{type(self).__qualname__}.columns")

    @property
    def needed_columns(self) -> frozenset[str]:
        """Columns that the table cannot do without."""
        return frozenset(self.changes.key)


def check_merge(sink: Sink, fields: Fields) -> None:
    """The keys of sinks that replace and delete rows by key."""
    rule = sink.changes
    for what in ("delete_when", "order_by"):
        if fields.has(what) and not rule.key:
            fields.wrong(what, "needs key, by which rows are found")
        if fields.has(what) and sink.mode == "complete":
            fields.wrong(what, "cannot be used with mode complete, which rewrites all rows")
    if len(set(rule.key)) < len(rule.key):
        fields.wrong("key", "names a column twice")
    for what, names in (("key", rule.key), ("order_by", (rule.order_by,) if rule.order_by else ())):
        for name in names:
            if name.startswith("_"):
                fields.wrong(what, f"{name} is not stored; select it under another name: SELECT {name} AS …")
    if rule.order_by in rule.key:
        fields.wrong("order_by", f"{rule.order_by} is part of the key, and the same for all rows that it would compare")
