"""`kind = "topic"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

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
    format: Literal["json", "avro", "protobuf"] = "json"
    """With registry: how all columns are written."""
    registry: str = ""
    """URL of a schema registry: values have the id of their schema."""
    subject: str = ""
    """Of the schema; by default TOPIC-value."""
    register: bool = True
    """Register the schema of the columns; otherwise rows are written with the latest version of the subject."""

    summary: ClassVar[str] = (
        "records: the column `value`, or all columns as JSON, or by a registered schema; "
        "without a value for rows that delete"
    )
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
        if not self.registry:
            for key in ("format", "subject", "register"):
                if fields.has(key):
                    fields.wrong(key, "needs registry")
        elif self.value is not None:
            fields.wrong("value", "cannot be used with registry, which writes all columns")
        if self.registry and self.format == "protobuf" and self.register:
            fields.wrong("register", "must be false for protobuf: columns have no field numbers; register a schema")
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
