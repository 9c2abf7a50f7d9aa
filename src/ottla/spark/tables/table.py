"""`ottla.spark.table` and `ottla.spark.table_stream`: a topic's table and the records after it, as one DataFrame."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.core.errors import OttlaError
from ottla.lake.covered import Covered
from ottla.spark.link import link_to
from ottla.spark.reader.options import Selection, kafka_settings
from ottla.spark.reader.topic_layout import Cluster
from ottla.spark.tables.bootstrap import FILES, Bootstrap, pin, pinned
from ottla.spark.tables.decoding import rows_of_records
from ottla.spark.tables.folder import folder_at
from ottla.spark.tables.history import (
    DEFAULT_CATALOG,
    data_files,
    file_schema,
    open_history,
    rows_of,
    without_ids,
)
from ottla.spark.tables.tail import as_json, begin_of, bounds, check_topic, reader_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from ottla.spark.reader.offsets import Offsets
    from ottla.spark.tables.folder import Folder
    from ottla.spark.tables.history import Catalog, History


def table(
    spark: SparkSession,
    topic: str,
    *,
    servers: str = "localhost:9092",
    catalog: Catalog = DEFAULT_CATALOG,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """All committed records of a topic up to now, as rows of its table.

    The rows that the table has are read by Spark's own reader, the others from the broker. Both ends are settled by
    this call, so that every action on the result sees the same rows.

    `catalog` is the URL of an Iceberg REST catalog, the data folder of a broker, or properties for pyiceberg, and
    `namespace` among them. `options` are those of `format("ottla")`, and `registry`: the URL of the schema registry
    with a login, if it needs one.
    """
    history = open_history(topic, catalog)
    given = reader_options(topic, servers, options or {})
    begin, end = bounds(topic, history.covered, given)
    rows = rows_of(spark, history)
    if begin == end:
        return rows
    _refuse_keyed(history)
    reader = spark.read.format("ottla").options(**given)
    records = reader.options(startingOffsets=as_json(begin), endingOffsets=as_json(end)).load()
    return rows.unionByName(_decoded(records, history, options), allowMissingColumns=True)


def table_stream(
    spark: SparkSession,
    topic: str,
    *,
    checkpoint: str,
    servers: str = "localhost:9092",
    catalog: Catalog = DEFAULT_CATALOG,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """All committed records of a topic, as a stream: first the rows of its table, then what follows.

    `checkpoint` is the checkpoint location of the query, which must be given to it as well: it keeps which files and
    offsets the query began with.
    """
    history = open_history(topic, catalog)
    _refuse_keyed(history)
    folder = folder_at(spark, str(checkpoint))
    given = reader_options(topic, servers, options or {})
    begun = pinned(folder, topic) or _begin(folder, history)
    reader = spark.readStream.format("ottla").options(**given)
    records = reader.option("startingOffsets", as_json(_starting(begun, given))).load()
    rows = _decoded(records, history, options)
    if not begun.has_files:
        return rows
    return _files(spark, folder, history, given).unionByName(rows, allowMissingColumns=True)


def _decoded(records: DataFrame, history: History, options: Mapping[str, str] | None) -> DataFrame:
    values = history.values()
    if (registry := (options or {}).get("registry")) is not None:
        values = replace(values, registry=registry)
    return rows_of_records(records, values, history.topic)


def _refuse_keyed(history: History) -> None:
    if history.is_keyed:
        raise OttlaError(f"the table of topic {history.topic} has one row for each key; read it without the tail")


def _begin(folder: Folder, history: History) -> Bootstrap:
    """Keep the current snapshot as that with which the query begins."""
    files = {} if history.snapshot_id is None else data_files(history)
    at = history.covered
    partitions = {str(partition): offset for partition, offset in at.partitions.items()}
    begun = Bootstrap(history.topic, history.snapshot_id, at.topic_id, partitions, has_files=bool(files))
    pin(folder, begun, files)
    return begun


def _starting(begun: Bootstrap, given: Mapping[str, str]) -> Offsets:
    cluster = Cluster(link_to(kafka_settings(given)), is_committed_only=True)
    partitions = cluster.partitions(Selection(topics=(begun.topic,)))
    covered = Covered(begun.topic_id, {int(each): offset for each, offset in begun.partitions.items()})
    check_topic(begun.topic, covered, partitions)
    return begin_of(covered, partitions)


def _files(spark: SparkSession, folder: Folder, history: History, given: Mapping[str, str]) -> DataFrame:
    reader = spark.readStream.schema(file_schema(spark, history)).option("recursiveFileLookup", "true")
    if most := given.get("maxFilesPerTrigger"):
        reader = reader.option("maxFilesPerTrigger", most)
    return without_ids(reader.parquet(f"{folder.path}/{FILES}"), history)
