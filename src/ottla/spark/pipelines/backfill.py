"""Backfill: run past records of a pipeline's topics through its steps into its sinks."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.core.closest import suggestion
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.frames import PastReading, dead_letter_rows, sink_rows
from ottla.spark.pipelines.preparing import kafka_of, make_topics, with_schemas
from ottla.spark.pipelines.state_folder import StateFolder
from ottla.spark.pipelines.writing import refused_rows, write_records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from ottla.spark.pipelines.definition import Pipeline

_IDS: Final = uuid.UUID("b5a5a1a6-6b0c-4f43-9a8c-6f3f5f0f7a11")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    from_ms: int
    to_ms: int
    sinks: Sequence[str] = ()
    """All sinks if empty."""
    data_dir: str | None = None
    """Read the files of this data folder instead of fetching from the broker."""


def run_backfill(spark: SparkSession, asked: Pipeline, wanted: Backfill, say: Callable[[str], None]) -> None:
    """A range that was backfilled into a table or database is not written again."""
    for name in wanted.sinks:
        if name not in asked.sinks:
            raise ConfigError(f"--sink: no [sink.{name}] in the file{suggestion(name, asked.sinks)}")
    if wanted.from_ms >= wanted.to_ms:
        raise ConfigError("--from must be before --to")
    pipeline = with_schemas(asked, StateFolder(asked.state))
    make_topics(pipeline)
    reading = PastReading(kafka_of(pipeline), wanted.from_ms, wanted.to_ms, wanted.data_dir)
    for name in wanted.sinks or pipeline.sinks:
        sink = pipeline.sinks[name]
        rows = sink_rows(spark, pipeline, name, reading)
        batch = refused_rows(sink, pipeline).micro_batch(_id(pipeline, name, wanted), 0, may_be_repeated=True)
        say(f"{name}: {sink.backfill(rows, batch, pipeline)}")
    for source in pipeline.sources.values():
        if source.has_dead_letters:
            bad = dead_letter_rows(spark, pipeline, source, reading)
            write_records(bad, source.dead_letters, kafka_of(pipeline))


def _id(pipeline: Pipeline, sink: str, wanted: Backfill) -> str:
    """The same for the same span."""
    return str(uuid.uuid5(_IDS, f"{pipeline.name}/{sink}/{wanted.from_ms}/{wanted.to_ms}"))
