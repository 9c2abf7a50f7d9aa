"""The queries of a pipeline: one for each sink, one for the dead letters of each source."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.checkpoints import check_checkpoint
from ottla.spark.pipelines.dead_letters.rules import metric_name
from ottla.spark.pipelines.evolution.conforming import frame_columns
from ottla.spark.pipelines.evolution.deciding import planned_evolution
from ottla.spark.pipelines.explained import stateful_parts
from ottla.spark.pipelines.frames import (
    StreamReading,
    dead_letter_rows,
    dead_letters_query,
    first_line,
    query_name,
    sink_rows,
)
from ottla.spark.pipelines.preparing import kafka_of
from ottla.spark.pipelines.upgrades import fingerprint, refuse_mismatch, with_known_state
from ottla.spark.pipelines.writing import checkpoint_of, stream_writer, topic_writer

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ottla.spark.pipelines.definition import Pipeline
    from ottla.spark.pipelines.state_folder import StateFolder

_STATE_STORE: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    """The name within its pipeline."""
    full_name: str
    sink: str
    frame: DataFrame
    writer: DataStreamWriter
    fingerprint: dict[str, Any] | None
    stateful: tuple[str, ...] = ()
    carries: tuple[str, ...] = ()
    """Sources whose invalid records it reports."""

    @property
    def columns(self) -> str:
        """The schema of the written rows."""
        shown = [field for field in self.frame.schema.fields if not field.name.startswith("_")]
        return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in shown)


def planned_queries(spark: SparkSession, pipeline: Pipeline) -> list[Query]:
    """All queries, analyzed by Spark and not started."""
    check_checkpoint(spark, pipeline)
    reading = StreamReading(kafka_of(pipeline))
    queries = []
    to_observe = _observable(pipeline)
    for sink in pipeline.sinks.values():
        rows = sink_rows(spark, pipeline, sink.name, reading, to_observe)
        plan = _checked_plan(rows, sink.name)
        carries = tuple(name for name in to_observe if f"CollectMetrics {metric_name(name)}," in plan)
        to_observe = [name for name in to_observe if name not in carries]
        parts = stateful_parts(plan)
        if "TransformWithState" in plan:
            check_protobuf()
            spark.conf.set(_STATE_STORE, _ROCKSDB)
        writer = stream_writer(rows, sink, pipeline)
        mark = fingerprint(pipeline, sink, parts, frame_columns(rows))
        name = query_name(pipeline, sink.name)
        queries.append(Query(sink.name, name, sink.target, rows, writer, mark, tuple(parts or ()), carries))
    carried = {source for query in queries for source in query.carries}
    return queries + _dead_letter_queries(spark, pipeline, reading, carried)


def _observable(pipeline: Pipeline) -> list[str]:
    """Sources with dead letters whose progress can be distinguished from that of others by their topics."""
    topics = [topic for source in pipeline.sources.values() for topic in source.topics]
    return [
        source.name
        for source in pipeline.sources.values()
        if source.has_dead_letters and all(topics.count(topic) == 1 for topic in source.topics)
    ]


def carriers(pipeline: Pipeline, queries: list[Query]) -> dict[str, tuple[str, str]]:
    """By source: the query that reports its invalid records, and its checkpoint."""
    return {
        source: (query.name, checkpoint_of(pipeline.checkpoint, query.name))
        for query in queries
        for source in query.carries
    }


def check_protobuf() -> None:
    """Spark's workers use it for state, and die without a message if it is missing."""
    try:
        import_module("google.protobuf")
    except ModuleNotFoundError:
        raise ConfigError(
            "transformWithState needs the package protobuf; run: pip install 'ottla[pipelines]'"
        ) from None


def _checked_plan(rows: DataFrame, sink: str) -> str:
    """Spark evaluates constants during planning, which may fail."""
    try:
        return plan_text(rows)
    except Exception as failed:
        raise ConfigError(f"[sink.{sink}]: {first_line(failed)}") from failed


def plan_text(frame: DataFrame) -> str:
    """The plan; Spark can only print it."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        frame.explain(extended=True)
    return printed.getvalue()


def _dead_letter_queries(
    spark: SparkSession, pipeline: Pipeline, reading: StreamReading, carried: Collection[str]
) -> list[Query]:
    """For sources that no sink's query reads, or whose progress cannot be distinguished from that of another."""
    queries = []
    for source in pipeline.sources.values():
        if source.has_dead_letters and source.name not in carried:
            name = dead_letters_query(source)
            rows = dead_letter_rows(spark, pipeline, source, reading)
            writer = topic_writer(rows, source.dead_letters, kafka_of(pipeline))
            writer = writer.option("checkpointLocation", checkpoint_of(pipeline.checkpoint, name))
            sink = f"topic {source.dead_letters}"
            queries.append(Query(name, query_name(pipeline, name), sink, rows, writer, None))
    return queries


def check_upgrade(pipeline: Pipeline, queries: list[Query], state: StateFolder) -> dict[str, list[str]]:
    """Reject changes that are incompatible with existing checkpoints and tables; returns, by sink, the changes of its
    table.
    """
    before = state.fingerprints()
    changes = {}
    for query in queries:
        if query.fingerprint is None:
            continue
        known = before.get(query.name)
        refuse_mismatch(query.name, known, query.fingerprint)
        written = None if known is None else known.get("columns")
        evolution = planned_evolution(pipeline.sinks[query.name], frame_columns(query.frame), written)
        changes[query.name] = [] if evolution is None else evolution.lines
    return changes


def keep_fingerprints(queries: list[Query], state: StateFolder) -> None:
    before = state.fingerprints()
    for query in queries:
        if query.fingerprint is not None:
            state.keep_fingerprint(query.name, with_known_state(before.get(query.name), query.fingerprint))
