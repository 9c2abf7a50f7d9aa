"""The rows of a sink with a key: marked as upserts and deletes, and the last one of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.changes.rules import DELETE, DELETED, ORIGIN, appended_deletes, check_columns
from ottla.spark.pipelines.evolution.conforming import frame_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ottla.spark.pipelines.changes.rules import ChangeRule
    from ottla.spark.pipelines.sinks.sink import Sink

_ROW: Final = "_ottla_row"
_RANK: Final = "_ottla_rank"


def marked(rows: DataFrame, sink: Sink) -> DataFrame:
    """The columns that a sink stores, and those that say how its rows are merged."""
    shown = [name for name in rows.columns if not name.startswith("_")]
    stored = [F.col(f"`{name}`") for name in shown]
    is_deleted = _is_deleted(rows, sink)
    if is_deleted is not None:
        stored.append(F.coalesce(is_deleted, F.lit(False)).alias(DELETE))  # noqa: FBT003 - a literal of Spark's
    if sink.changes.is_merge:
        check_columns(sink, frame_columns(rows))
        if set(ORIGIN) <= set(rows.columns):
            stored += [F.col(name) for name in ORIGIN]
    return rows.select(*stored)


def _is_deleted(rows: DataFrame, sink: Sink) -> Column | None:
    rule = sink.changes
    if rule.delete_when is not None:
        try:
            kind = dict(rows.select(F.expr(rule.delete_when).alias(DELETE)).dtypes)[DELETE]
        except Exception as failed:
            first = (str(failed).strip().splitlines() or [type(failed).__name__])[0]
            raise ConfigError(f"[sink.{sink.name}] delete_when: {first}") from failed
        if kind != "boolean":
            raise ConfigError(f"[sink.{sink.name}] delete_when: {rule.delete_when!r} is a {kind}, and must be boolean")
        return F.expr(rule.delete_when)
    if DELETED not in rows.columns or rule.keeps_deletes:
        return None
    if not rule.key:
        raise appended_deletes(sink)
    return F.col(DELETED)


def last_per_key(frame: DataFrame, rule: ChangeRule) -> DataFrame:
    """One row for each key: the greatest of `order_by`, then the last record, then the last row of the micro-batch.

    Rows without a key are all kept: each of them is rejected separately.
    """
    spark = frame.sparkSession
    parts = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    key = [F.col(f"`{name}`") for name in rule.key]
    order = [F.col(f"`{rule.order_by}`")] if rule.order_by else []
    order += [F.col(name) for name in ORIGIN if name in frame.columns]
    newest_first = [column.desc_nulls_last() for column in (*order, F.col(_ROW))]
    ranked = (
        frame.withColumn(_ROW, F.monotonically_increasing_id())
        .repartition(parts, *key)
        .withColumn(_RANK, F.row_number().over(Window.partitionBy(*key).orderBy(*newest_first)))
    )
    kept = ranked.where((F.col(_RANK) == 1) | without_key(rule))
    return kept.drop(_ROW, _RANK, *ORIGIN)


def stored_rows(frame: DataFrame, sink: Sink) -> DataFrame:
    """The contents of an empty table after these rows."""
    rows = last_per_key(frame, sink.changes) if sink.changes.is_merge else frame
    if DELETE in rows.columns:
        rows = rows.where(~F.col(DELETE))
    return rows.select(*(f"`{name}`" for name in rows.columns if not name.startswith("_")))


def without_key(rule: ChangeRule) -> Column:
    found = F.lit(False)  # noqa: FBT003 - a literal of Spark's
    for name in rule.key:
        found = found | F.col(f"`{name}`").isNull()
    return found
