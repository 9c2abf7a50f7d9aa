"""The definition of a pipeline, parsed from its file. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from ottla.spark.pipelines.formats.json_records import JsonFormat
from ottla.spark.pipelines.sinks.sink import NO_DEAD_LETTERS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ottla.spark.pipelines.formats.format import Nulls, SourceFormat
    from ottla.spark.pipelines.sinks.sink import Sink


META_COLUMNS: Final = ("_key", "_topic", "_partition", "_offset", "_timestamp")
"""Internal columns of every parsed row. Columns with this prefix never reach a sink."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    name: str
    topics: tuple[str, ...]
    format: SourceFormat = field(default_factory=JsonFormat)
    """How values are parsed, with the keys of this format."""
    schema: str | None = None
    """Spark's DDL, or an Avro schema as JSON; None if it is inferred."""
    sample: int = 1000
    """The number of records that a schema is inferred from."""
    start: str = "earliest"
    """earliest, latest, or a timestamp in milliseconds."""
    event_time: str | None = None
    watermark: str | None = None
    max_event_time_ahead_ms: int | None = None
    """Records whose event time is further ahead of the record timestamp are dead letters."""
    dead_letters: str = NO_DEAD_LETTERS
    nulls: Nulls = "dead-letter"
    key: tuple[str, ...] = ()
    """The columns in the record's key: a record without a value has only these, and deletes its row."""
    max_per_batch: int | None = None
    fail_on_data_loss: bool = True
    archive: str = ""
    """The archive of the topics, which is read together with them."""

    @property
    def has_deletes(self) -> bool:
        """Whether rows mark themselves as deletions."""
        return self.format.has_deletes or self.nulls == "delete"

    @property
    def has_dead_letters(self) -> bool:
        return self.format.has_schema and self.dead_letters != NO_DEAD_LETTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticTable:
    name: str
    format: Literal["parquet", "csv", "json", "delta", "jdbc"]
    path: str = ""
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Spark's options of the format, such as header; for jdbc also user and password."""
    url: str = field(default="", repr=False)
    table: str = ""
    """A table of a database, or a query."""
    query: str = ""
    jars: tuple[str, ...] = ()
    """Jars of the database's driver."""
    refresh_ms: int | None = None
    """The interval of checks for changed files; None to read them once."""

    @property
    def place(self) -> str:
        return self.table or " ".join(self.query.split()) or self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplication:
    of: str
    keys: tuple[str, ...]
    is_within_watermark: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFunction:
    file: Path
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFunction:
    """A function from rows, as an Arrow table or a pandas DataFrame, to rows with these columns."""

    of: str
    function: PythonFunction
    schema: str
    is_pandas: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Exactly one of the four is set."""

    name: str
    sql: str | None = None
    python: PythonFunction | None = None
    deduplicate: Deduplication | None = None
    rows: RowFunction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    name: str
    file: Path
    broker: str
    state: Path
    checkpoint: str
    """The folder of Spark's checkpoints, one per query."""
    sources: Mapping[str, Source]
    tables: Mapping[str, StaticTable]
    steps: tuple[Step, ...]
    sinks: Mapping[str, Sink]
    every_ms: int = 10_000
    kafka: Mapping[str, str] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)
