"""Changes into a Delta table, by deltalake's own merge: files with rows of these keys are rewritten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.spark.pipelines.changes.rules import DELETE

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

    from ottla.spark.pipelines.changes.rules import ChangeRule
    from ottla.spark.pipelines.tables.changes import Changes

_STREAMED_BYTES: Final = 256 << 20
"""A larger source is streamed; a smaller one is scanned first, to skip files without its keys."""


def merge(table: DeltaTable, changes: Changes, schema: pa.Schema, rule: ChangeRule, **options: Any) -> None:
    names = schema.names
    source = changes.rows.select([*names, DELETE])
    # By position: the parser of deltalake takes names of any kind in the target only.
    source = source.rename_columns([f"c{at}" for at in range(len(names) + 1)])
    of = {name: f"s.c{at}" for at, name in enumerate(names)}
    is_deleted = f"s.c{len(names)}"
    is_newer = _is_newer(rule, of)
    values = {_quoted(name): value for name, value in of.items()}
    (
        table.merge(
            source,
            " AND ".join(f"t.{_quoted(name)} = {of[name]}" for name in rule.key),
            source_alias="s",
            target_alias="t",
            streamed_exec=source.nbytes > _STREAMED_BYTES,
            **options,
        )
        .when_matched_delete(f"{is_deleted} AND {is_newer}")
        .when_matched_update(values, f"NOT {is_deleted} AND {is_newer}")
        .when_not_matched_insert(values, f"NOT {is_deleted}")
        .execute()
    )


def _is_newer(rule: ChangeRule, of: dict[str, str]) -> str:
    if rule.order_by is None:
        return "true"
    stored = f"t.{_quoted(rule.order_by)}"
    return f"({stored} IS NULL OR {of[rule.order_by]} >= {stored})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
