"""`kind = "console"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ottla.spark.pipelines.changes.rules import ChangeRule
from ottla.spark.pipelines.sinks.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ottla.spark.pipelines.definition import Pipeline
    from ottla.spark.pipelines.sinks.batch import MicroBatch
    from ottla.spark.pipelines.sinks.sink import Mode


class ConsoleSink(Sink, frozen=True, kw_only=True, tag="console"):
    summary: ClassVar[str] = "the terminal"

    @property
    def place(self) -> str:
        return "console"

    @property
    def target(self) -> str:
        return "the console"

    @property
    def changes(self) -> ChangeRule:
        return ChangeRule(keeps_deletes=True)

    @classmethod
    def default_mode(cls, *, has_key: bool) -> Mode:  # noqa: ARG003 - it has none
        return "update"

    def stream(self, frame: DataFrame, pipeline: Pipeline) -> DataStreamWriter:  # noqa: ARG002 - the same for all
        return frame.writeStream.format("console").option("truncate", "false")

    def backfill(self, frame: DataFrame, batch: MicroBatch, pipeline: Pipeline) -> str:  # noqa: ARG002 - shown each time
        frame.show(truncate=False)
        return "shown"
