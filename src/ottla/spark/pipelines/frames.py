"""A pipeline's sources, tables and steps as Spark DataFrames, by name."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.changes.marking import marked
from ottla.spark.pipelines.changes.rules import refuse_lost_deletes
from ottla.spark.pipelines.column_checks import unknown_columns
from ottla.spark.pipelines.dead_letters.rules import metric_name
from ottla.spark.pipelines.parsing import bad_rows, good_rows
from ottla.spark.pipelines.sql_errors import missing_table, sql_error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from ottla.spark.pipelines.definition import Pipeline, PythonFunction, Source, StaticTable, Step


class Reading(Protocol):
    """Readers of a source: as a stream, or past records as a batch."""

    is_stream: bool

    def load(self, spark: SparkSession, source: Source, group: str) -> DataFrame: ...


class StreamReading:
    is_stream = True

    def __init__(self, kafka: Mapping[str, str]) -> None:
        self._kafka = kafka

    def load(self, spark: SparkSession, source: Source, group: str) -> DataFrame:
        reader = spark.readStream.format("ottla").options(**self.options(source, group))
        return reader.load()

    def options(self, source: Source, group: str) -> dict[str, str]:
        options = {f"kafka.{name}": value for name, value in self._kafka.items()}
        options |= {
            "kafka.group.id": group,
            "subscribe": ",".join(source.topics),
            "includeHeaders": "true",
            "failOnDataLoss": str(source.fail_on_data_loss).lower(),
        }
        if source.start in ("earliest", "latest"):
            options["startingOffsets"] = source.start
        else:
            options |= {"startingTimestamp": source.start, "startingOffsetsByTimestampStrategy": "latest"}
        if source.max_per_batch is not None:
            options["maxOffsetsPerTrigger"] = str(source.max_per_batch)
        return options | _archive(source)


class PastReading:
    """All records of a time range, from the broker or from a data folder."""

    is_stream = False

    def __init__(self, kafka: Mapping[str, str], from_ms: int, to_ms: int, data_dir: str | None = None) -> None:
        self._kafka = kafka
        self._span = {"startingTimestamp": str(from_ms), "endingTimestamp": str(to_ms)}
        self._data_dir = data_dir

    def load(self, spark: SparkSession, source: Source, group: str) -> DataFrame:  # noqa: ARG002 - no group to report to
        options = {"subscribe": ",".join(source.topics), "includeHeaders": "true", **self._span}
        options["startingOffsetsByTimestampStrategy"] = "latest"
        options |= {f"kafka.{name}": value for name, value in self._kafka.items()}
        options |= _archive(source) if self._data_dir is None else {"path": self._data_dir}
        return spark.read.format("ottla").options(**options).load()


def _archive(source: Source) -> dict[str, str]:
    return {"archive": source.archive} if source.archive else {}


def query_name(pipeline: Pipeline, sink: str) -> str:
    """The name of a sink's query and of the consumer group that shows its progress."""
    return f"{pipeline.name}.{sink}"


def sink_rows(
    spark: SparkSession, pipeline: Pipeline, sink: str, reading: Reading, observed: Collection[str] = ()
) -> DataFrame:
    """The rows that a sink gets, without columns that begin with _, except those by which rows are merged. Invalid
    records of `observed` sources are reported.
    """
    wanted = pipeline.sinks[sink]
    rows = _all_rows(spark, pipeline, query_name(pipeline, sink), reading, observed)[wanted.of]
    shown = [column for column in rows.columns if not column.startswith("_")]
    if not shown:
        raise ConfigError(f"[sink.{sink}] from: all columns of {wanted.of} begin with _; rename some")
    for key, names in wanted.named_columns().items():
        if problems := unknown_columns(names, shown):
            raise ConfigError(f"[sink.{sink}] {key}: {problems[0]}")
    refuse_lost_deletes(pipeline, wanted, rows.columns)
    return marked(rows, wanted)


def dead_letter_rows(spark: SparkSession, pipeline: Pipeline, source: Source, reading: Reading) -> DataFrame:
    raw = reading.load(spark, source, query_name(pipeline, dead_letters_query(source)))
    return bad_rows(raw, source, pipeline.name)


def dead_letters_query(source: Source) -> str:
    return f"{source.name}-dead-letters"


def _all_rows(
    spark: SparkSession, pipeline: Pipeline, group: str, reading: Reading, observed: Collection[str]
) -> dict[str, DataFrame]:
    """Every sink has separate DataFrames: each is a separate query, with separate offsets."""
    frames: dict[str, DataFrame] = {}

    def keep(name: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(name)
        frames[name] = frame

    for source in pipeline.sources.values():
        metric = metric_name(source.name) if source.name in observed else None
        rows = good_rows(reading.load(spark, source, group), source, metric)
        keep(source.name, _with_watermark(rows, source, reading))
    for table in pipeline.tables.values():
        keep(table.name, _static(spark, table))
    _add_steps(spark, pipeline.steps, frames)
    return frames


def _add_steps(spark: SparkSession, steps: Sequence[Step], frames: dict[str, DataFrame]) -> None:
    """Raises an error with all steps that Spark cannot analyze, not only the first."""
    mistakes: dict[str, Exception] = {}
    failed: set[str] = set()
    for step in steps:
        try:
            frame = _applied(spark, step, frames)
            frame.createOrReplaceTempView(step.name)
            frames[step.name] = frame
        except Exception as refused:  # noqa: BLE001 - whatever Spark or a function of the user's raises
            # Steps that depend on a failed one fail too, without new information.
            if missing_table(str(refused)) not in failed and not _builds_on(step, failed):
                reason = sql_error(str(refused), frames) or type(refused).__name__
                mistakes[f"[step.{step.name}]: {reason}"] = refused
            failed.add(step.name)
            # Otherwise the view of an earlier plan would be used.
            spark.catalog.dropTempView(step.name)
    if mistakes:
        raise ConfigError("\n".join(mistakes)) from next(iter(mistakes.values()))


def _builds_on(step: Step, failed: set[str]) -> bool:
    built_on = step.deduplicate or step.rows
    return built_on is not None and built_on.of in failed


def first_line(failed: Exception) -> str:
    lines = str(failed).strip().splitlines() or [type(failed).__name__]
    return lines[0]


def _with_watermark(rows: DataFrame, source: Source, reading: Reading) -> DataFrame:
    if source.watermark is None or not reading.is_stream:
        return rows
    column = source.event_time or "_timestamp"
    if column not in rows.columns:
        raise ConfigError(f"[source.{source.name}] event_time: there is no column {column}; there are {rows.columns}")
    return rows.withWatermark(column, source.watermark)


def _static(spark: SparkSession, table: StaticTable) -> DataFrame:
    if table.format == "delta":
        from ottla.spark.pipelines.stores.files import LocalFiles
        from ottla.spark.pipelines.tables.delta import DeltaTable

        return spark.read.option("basePath", table.path).parquet(*DeltaTable(LocalFiles(Path(table.path))).files())
    if table.format == "jdbc":
        what = {"dbtable": table.table} if table.table else {"query": table.query}
        return spark.read.format("jdbc").options(**table.options, **what, url=table.url).load()
    reader = spark.read.format(table.format).options(**table.options)
    if table.schema is not None:
        reader = reader.schema(table.schema)
    return reader.load(table.path)


def _applied(spark: SparkSession, step: Step, frames: dict[str, DataFrame]) -> DataFrame:
    if step.sql is not None:
        return spark.sql(step.sql)
    if step.deduplicate is not None:
        rows = frames[step.deduplicate.of]
        drop = rows.dropDuplicatesWithinWatermark if step.deduplicate.is_within_watermark else rows.dropDuplicates
        if not rows.isStreaming:
            drop = rows.dropDuplicates
        return drop(list(step.deduplicate.keys))
    if step.rows is not None:
        from ottla.spark.pipelines.mapped_rows import mapped

        return mapped(frames[step.rows.of], step.rows, _function(step.rows.function))
    if step.python is None:
        raise ConfigError("has nothing to do")
    made = _function(step.python)(spark, dict(frames))
    if not hasattr(made, "createOrReplaceTempView"):
        raise ConfigError(f"{step.python.function} must return a frame, not {type(made).__name__}")
    return made


def _function(python: PythonFunction) -> Callable[..., Any]:
    """Loaded from the current file. Its definitions are pickled by value for Spark's workers, which do not have the
    file.
    """
    from pyspark import cloudpickle

    name = f"ottla_pipeline_{python.file.stem}"
    spec = importlib.util.spec_from_file_location(name, python.file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{python.file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)
    return getattr(module, python.function)  # type: ignore[no-any-return]
