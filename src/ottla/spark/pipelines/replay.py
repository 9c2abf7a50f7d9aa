"""Replays a table into a topic, with the rows' timestamps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from ottla.core.closest import suggestion
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.stores.addresses import is_in_store
from ottla.spark.pipelines.writing import write_records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from ottla.spark.pipelines.sinks.tables import TableSink

_TIMESTAMP: Final = "timestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    topic: str
    timestamp: str = _TIMESTAMP
    key: str | None = None
    value: str | None = None
    """All columns as JSON, if there is no such column."""
    where: str | None = None


def table_frame(spark: SparkSession, sink: TableSink) -> DataFrame:
    """The rows of a sink's table."""
    table = sink.open_table()
    files, columns = table.files(), table.columns()
    if not files or columns is None:
        raise ConfigError(f"no data in {sink.path}")
    if is_in_store(sink.path):
        from ottla.spark.pipelines.stores.reading import store_frame

        return store_frame(spark, sink.files(), files, columns.columns)
    reader = spark.read
    if sink.names_partitions_by_folders:
        # Columns that name folders are not in the files.
        reader = reader.option("basePath", Path(sink.path).as_uri())
    return reader.parquet(*(Path(file.removeprefix("file://")).as_uri() for file in files))


def replay_rows(rows: DataFrame, wanted: Replay, kafka: Mapping[str, str]) -> None:
    """In the order of their timestamps, with a single writer."""
    if wanted.where is not None:
        rows = rows.where(wanted.where)
    records = rows.select(*_record(rows, wanted)).orderBy("timestamp").coalesce(1)
    write_records(records, wanted.topic, kafka)


def _record(rows: DataFrame, wanted: Replay) -> list[Column]:
    _check(rows.columns, wanted)
    chosen = [F.col(wanted.timestamp).cast("timestamp").alias("timestamp")]
    if wanted.value is not None or "value" in rows.columns:
        chosen.append(F.col(wanted.value or "value").alias("value"))
    else:
        chosen.append(F.to_json(F.struct(*(f"`{column}`" for column in rows.columns))).alias("value"))
    key = wanted.key or ("key" if "key" in rows.columns else None)
    if key is not None:
        is_bytes = dict(rows.dtypes)[key] == "binary"
        chosen.append((F.col(key) if is_bytes else F.col(key).cast("string")).alias("key"))
    if "headers" in rows.columns:
        chosen.append(F.col("headers"))
    return chosen


def _check(columns: Sequence[str], wanted: Replay) -> None:
    for option, column in (("--timestamp", wanted.timestamp), ("--key", wanted.key), ("--value", wanted.value)):
        if column is not None and column not in columns:
            hint = suggestion(column, columns)
            raise ConfigError(f"{option}: there is no column {column}{hint or '; there are ' + ', '.join(columns)}")
