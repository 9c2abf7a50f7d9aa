"""`kind = "topic"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ottla.spark.pipelines.changes.rules import ChangeRule
from ottla.spark.pipelines.sinks.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ottla.spark.pipelines.definition import Pipeline
    from ottla.spark.pipelines.fields import Fields
    from ottla.spark.pipelines.sinks.batch import MicroBatch


class TopicSink(Sink, frozen=True, kw_only=True, tag="topic"):
    topic: str
    key: tuple[str, ...] = ()
    """The column of the record's key."""
    value: str | None = None
    """The column of the record's value; None for all columns as JSON."""
    delete_when: str | None = None
    """An SQL condition: rows for which it holds become records without a value."""

    summary: ClassVar[str] = "records: the column `value`, or all columns as JSON; without a value for rows that delete"
    example: ClassVar[tuple[str, ...]] = (
        'topic = "{name}-copy"',
        '# key = "{first}"               # the column that becomes the record\'s key',
    )

    @property
    def place(self) -> str:
        return self.topic

    @property
    def topics(self) -> tuple[str, ...]:
        return (self.topic,)

    @property
    def changes(self) -> ChangeRule:
        return ChangeRule(key=self.key, delete_when=self.delete_when)

    def check(self, fields: Fields) -> None:
        if len(self.key) > 1:
            fields.wrong("key", "a record has one key; name one column")
        if fields.has("delete_when") and not self.key:
            fields.wrong("delete_when", "needs key, by which rows are found")
        if fields.has("delete_when") and self.mode == "complete":
            fields.wrong("delete_when", "cannot be used with mode complete, which rewrites all rows")

    def named_columns(self) -> dict[str, tuple[str, ...]]:
        return {**super().named_columns(), "value": (self.value,) if self.value else ()}

    def stream(self, frame: DataFrame, pipeline: Pipeline) -> DataStreamWriter:
        from ottla.spark.pipelines.preparing import kafka_of
        from ottla.spark.pipelines.writing import as_records, topic_writer

        return topic_writer(as_records(frame, self), self.topic, kafka_of(pipeline))

    def backfill(self, frame: DataFrame, batch: MicroBatch, pipeline: Pipeline) -> str:  # noqa: ARG002 - in a transaction
        from ottla.spark.pipelines.preparing import kafka_of
        from ottla.spark.pipelines.writing import as_records, write_records

        write_records(as_records(frame, self), self.topic, kafka_of(pipeline))
        return "written"
