"""Sinks that are tables of files, in a folder or an object store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.changes.rules import ChangeRule
from ottla.spark.pipelines.keys import DeadLetterTopic, FilePath, Positive, Storage
from ottla.spark.pipelines.sinks.sink import NO_DEAD_LETTERS
from ottla.spark.pipelines.sinks.stored import StoredSink, check_merge
from ottla.spark.pipelines.stores.addresses import is_address, is_in_store, why_wrong
from ottla.spark.pipelines.stores.files import LocalFiles
from ottla.spark.pipelines.stores.settings import StorageSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.columns.evolution import TableColumns
    from ottla.spark.pipelines.fields import Fields
    from ottla.spark.pipelines.sinks.batch import MicroBatch
    from ottla.spark.pipelines.sinks.sink import Mode, Writer
    from ottla.spark.pipelines.stores.files import Files
    from ottla.spark.pipelines.tables.interface import CleanupResult, Table


class TableSink(StoredSink, frozen=True, kw_only=True):
    """One that only grows."""

    path: FilePath
    partition_by: tuple[str, ...] = ()
    compact_every: Positive | None = None
    """Merge small files after this number of micro-batches."""
    target_file_bytes: Annotated[int, msgspec.Meta(ge=1024)] = 128 << 20
    storage: Storage = StorageSettings()
    """How the object store of its path is reached."""

    append_only_hint: ClassVar[str] = "use a delta or iceberg sink with a key"
    names_partitions_by_folders: ClassVar[bool] = True
    """Columns of `partition_by` are not in the files."""

    @property
    def place(self) -> str:
        return self.path

    @property
    def needed_columns(self) -> frozenset[str]:
        return super().needed_columns | frozenset(self.partition_by)

    def check(self, fields: Fields) -> None:
        if self.mode != "append" and not self.changes.key:
            text = f"a {self.kind} table without a key can only grow (append); {self.append_only_hint}"
            fields.wrong("mode", text)
        elif self.mode == "complete":
            text = f"a {self.kind} table is not rewritten as a whole; use update, or send the rows to a database"
            fields.wrong("mode", text)
        if is_address(self.path) and (wrong := why_wrong(self.path)) is not None:
            fields.wrong("path", wrong)

    def check_access(self) -> None:
        if not is_in_store(self.path):
            return
        from ottla.spark.pipelines.stores.checking import check_access

        self.check_libraries()
        try:
            check_access(self.path, self.storage)
        except ConfigError as refused:
            raise ConfigError(f"[sink.{self.name}] path: {refused}") from None

    def check_libraries(self) -> None:
        """Raise ConfigError if a package that it needs is missing."""

    def named_columns(self) -> dict[str, tuple[str, ...]]:
        return {"partition_by": self.partition_by, **super().named_columns()}

    def fingerprint(self) -> dict[str, Any]:
        return {"partition_by": list(self.partition_by), "key": list(self.changes.key)}

    @property
    def replaces_files(self) -> bool:
        """Whether a running pipeline removes files of it without a log that a compaction elsewhere would see."""
        return False

    def files(self) -> Files:
        if not is_in_store(self.path):
            return LocalFiles(Path(self.path))
        from ottla.spark.pipelines.stores.opening import store_files

        return store_files(self.path, self.storage)

    def open_table(self) -> Table:
        """The table, opened without Spark."""
        raise NotImplementedError(f"{type(self).__qualname__}.open_table")

    def columns(self) -> TableColumns | None:
        return self.open_table().columns()

    def tidy(self, *, orphan_age_s: float = 3600.0) -> CleanupResult:
        """Merge small files and remove orphans."""
        return self.open_table().tidy(target_file_bytes=self.target_file_bytes, orphan_age_s=orphan_age_s)

    def write(self, frame: DataFrame, batch: MicroBatch) -> int:
        from ottla.spark.pipelines.tables.writing import write_table

        return write_table(self.open_table(), frame, self, batch)

    def writer(self) -> Writer:
        from ottla.spark.pipelines.tables.writing import TableWriter

        return TableWriter(self)


class MergingTableSink(TableSink, frozen=True, kw_only=True):
    """One whose rows can be replaced and deleted by key."""

    key: tuple[str, ...] = ()
    """Columns by which rows are replaced and deleted."""
    delete_when: str | None = None
    """An SQL condition: rows for which it holds delete the row with their key."""
    order_by: str | None = None
    """The column by which a row is older than the stored one, and is then left out."""
    dead_letters: DeadLetterTopic = NO_DEAD_LETTERS
    """The topic for rows without a key; none stops the query at the first."""
    keep_versions: Positive | None = None
    """How many of the last versions of the table can be read; None for the default."""

    append_only_hint: ClassVar[str] = "set key, so that rows are replaced"

    @property
    def changes(self) -> ChangeRule:
        return ChangeRule(key=self.key, order_by=self.order_by, delete_when=self.delete_when, is_merge=bool(self.key))

    @property
    def dead_letter_topic(self) -> str:
        return self.dead_letters if self.key else NO_DEAD_LETTERS

    @classmethod
    def default_mode(cls, *, has_key: bool) -> Mode:
        return "update" if has_key else "append"

    def check(self, fields: Fields) -> None:
        super().check(fields)
        check_merge(self, fields)
        if fields.has("dead_letters") and not self.key:
            fields.wrong("dead_letters", f"a {self.kind} sink refuses rows only if it has a key")
