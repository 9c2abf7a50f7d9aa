"""The base class of all kinds of sinks. No Spark is imported here: a file is checked without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol

import msgspec

from ottla.spark.pipelines.changes.rules import ChangeRule
from ottla.spark.pipelines.stores.secrets import secrets_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ottla.spark.pipelines.definition import Pipeline
    from ottla.spark.pipelines.fields import Fields
    from ottla.spark.pipelines.sinks.batch import MicroBatch

Mode = Literal["append", "update", "complete"]
NO_DEAD_LETTERS: Final = "none"


class Writer(Protocol):
    def write(self, frame: DataFrame, batch: MicroBatch, /) -> int: ...


class Sink(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """`[sink.NAME]`. A kind is a subclass: its tag is the `kind`, its fields are the keys beside `from` and `mode`."""

    name: str
    of: str
    """The step or source whose rows it takes: `from`."""
    mode: Mode = "append"
    """Spark's output mode."""

    summary: ClassVar[str] = ""
    """What it writes, for the documentation."""
    example: ClassVar[tuple[str, ...]] = ()
    """Its keys in a file of `ottla pipeline init`; may use {name} (of the source) and {first} (its first column)."""
    hints: ClassVar[dict[str, str]] = {}
    """For keys that this kind does not have: what to do instead."""

    def __repr__(self) -> str:
        """Without values: fields may hold passwords."""
        return f"{type(self).__name__}({self.name}: {self.target})"

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)

    @property
    def place(self) -> str:
        """The table, folder or topic that it writes to; must not change while a checkpoint is used."""
        return ""

    @property
    def target(self) -> str:
        """Kind and place, for people to read."""
        return f"{self.kind} {self.place}".rstrip()

    @property
    def changes(self) -> ChangeRule:
        """How rows replace and delete others. By default they do not."""
        return ChangeRule()

    @property
    def dead_letter_topic(self) -> str:
        """For rows that it refuses; none if it never refuses any, or stops at the first."""
        return NO_DEAD_LETTERS

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics to create before the pipeline runs."""
        return () if self.dead_letter_topic == NO_DEAD_LETTERS else (self.dead_letter_topic,)

    @property
    def jar_files(self) -> tuple[str, ...]:
        """Java archives that Spark is started with."""
        return ()

    @classmethod
    def default_mode(cls, *, has_key: bool) -> Mode:  # noqa: ARG003 - for subclasses
        """Of a sink that does, or does not, have `key`."""
        return "append"

    def check(self, fields: Fields) -> None:
        """Report keys that contradict each other: `fields.wrong("key", "what is wrong; what to do")`."""

    def check_access(self) -> None:
        """Raise ConfigError if the target cannot be written to. Called before Spark is started."""

    def named_columns(self) -> dict[str, tuple[str, ...]]:
        """Columns that its keys name, by key; they must exist in the rows."""
        rule = self.changes
        return {"key": rule.key, "order_by": (rule.order_by,) if rule.order_by else ()}

    def why_unordered(self, column: str, kind: str) -> str | None:  # noqa: ARG002 - for subclasses
        """Why stored values of a type cannot be compared by `order_by`; None if they can."""
        return None

    def fingerprint(self) -> dict[str, Any]:
        """Beside kind and place: what must stay the same for a checkpoint to be continued."""
        return {"partition_by": [], "key": []}

    def secrets(self) -> set[str]:
        """Values that must not appear in logs, errors or the status: passwords in addresses, keys of stores."""
        return secrets_in(msgspec.structs.asdict(self))

    def write(self, frame: DataFrame, batch: MicroBatch) -> int:
        """Write a micro-batch, unless it is written already; returns the number of rows."""
        raise NotImplementedError(f"{type(self).__qualname__}.write")

    def writer(self) -> Writer:
        """What writes the micro-batches of a stream, one after the other: an object that may keep a connection open."""
        return self

    def stream(self, frame: DataFrame, pipeline: Pipeline) -> DataStreamWriter:
        """The stream that writes the frame. By default it calls `writer().write` for each micro-batch."""
        from ottla.spark.pipelines.writing import each_batch

        return frame.writeStream.foreachBatch(each_batch(self, pipeline))

    def backfill(self, frame: DataFrame, batch: MicroBatch, pipeline: Pipeline) -> str:  # noqa: ARG002 - for subclasses
        """Write a frame that is not a stream; returns what was done."""
        return f"{self.write(frame, batch):,} rows"
