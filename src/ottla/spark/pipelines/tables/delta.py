"""A Delta table, with the package deltalake. Its log has the last micro-batch of each query (as a `txn` action)."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from ottla.columns.arrow_types import arrow_schema, with_schema
from ottla.columns.evolution import TableColumns
from ottla.columns.types import columns_of
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.tables.changes import Changes
from ottla.spark.pipelines.tables.delta_log import files_to_remove, named_in_checkpoints, named_in_commits
from ottla.spark.pipelines.tables.interface import KEEP_VERSIONS, CleanupResult
from ottla.spark.pipelines.tables.replaced import ReplacedFiles
from ottla.spark.pipelines.tables.staging import STAGED_ASIDE, BatchId, Staging, clear, put_in_place, stage, staged_rows
from ottla.spark.pipelines.tables.strays import remove_strays

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    import pyarrow as pa
    from deltalake import DeltaTable as LakeTable
    from deltalake.transaction import AddAction, PostCommitHookProperties
    from pyspark.sql import DataFrame

    from ottla.columns.evolution import Evolution
    from ottla.columns.types import Struct
    from ottla.spark.pipelines.changes.rules import ChangeRule
    from ottla.spark.pipelines.stores.files import FileInfo, Files
    from ottla.spark.pipelines.tables.staging import StagedFile

_CHECKPOINT_EVERY: Final = 10
"""Commits between two checkpoints. Readers replay the commits since the last one; Delta's default is 100."""
_CREATED_BY_PIPELINE: Final = "ottla.createdByPipeline"
_LOG: Final = "_delta_log"
_CONFIGURATION: Final = {"delta.checkpointInterval": str(_CHECKPOINT_EVERY), _CREATED_BY_PIPELINE: "true"}


class DeltaTable:
    def __init__(self, files: Files, partition_by: Sequence[str] = (), keep_versions: int | None = None) -> None:
        self._files = files
        self._keep_versions = keep_versions
        self._partition_by = list(partition_by)
        self._table: Any = None
        self._read_from = 0
        """The version that the open table was read at, before it followed the log."""
        self._replaced = ReplacedFiles()
        self._is_merged = False

    def has(self, batch: BatchId) -> bool:
        table = self._followed() or self._opened()
        version = None if table is None else table.transaction_version(batch.query)
        return version is not None and version >= batch.number

    def columns(self) -> TableColumns | None:
        table = self._table or self._opened()
        return None if table is None else TableColumns(columns_of(json.loads(table.schema().to_json())))

    def stage(self, frame: DataFrame, batch: BatchId) -> list[StagedFile]:
        return stage(frame, self._files, batch, Staging(self._partition_by))

    def commit(self, files: Sequence[StagedFile], batch: BatchId, evolution: Evolution) -> int:
        put_in_place(self._files, files)
        self._evolve(evolution)
        self._commit(files, evolution.columns, batch)
        clear(self._files, batch)
        return sum(each.row_count for each in files)

    def stage_changes(self, frame: DataFrame, batch: BatchId) -> Changes:
        schema = arrow_schema(columns_of(frame.schema.jsonValue()))
        return Changes(staged_rows(self._files, stage(frame, self._files, batch, STAGED_ASIDE), schema))

    def merge(self, changes: Changes, batch: BatchId, evolution: Evolution, rule: ChangeRule) -> int:
        from ottla.spark.pipelines.tables.delta_merge import merge

        self._evolve(evolution)
        table = self._table or self._opened()
        # A failure leaves it in an unknown state; the next attempt reads the log again.
        self._table = None
        self._is_merged = True
        before = set(_names(table))
        merge(table, changes, arrow_schema(evolution.columns), rule, **_commit_options(batch))
        self._replaced.note(before - set(_names(table)), time.monotonic())
        self._after_commit(table)
        self._table = table
        clear(self._files, batch)
        return int(changes.rows.num_rows)

    def files(self) -> list[str]:
        table = self._opened()
        if table is None:
            raise ConfigError(f"there is no Delta table in {self._files.root}")
        return [self._files.place(name) for name in _names(table)]

    def tidy(self, *, target_file_bytes: int, orphan_age_s: float) -> CleanupResult:
        table = self._opened()
        if table is None:
            return CleanupResult()
        merged = table.optimize.compact(target_size=target_file_bytes)
        # Readers of an older version may still need files that were merged; Delta keeps them for a week.
        table.vacuum(dry_run=False)
        return CleanupResult(merged["numFilesRemoved"], merged["numFilesAdded"], self.remove_orphans(orphan_age_s))

    def remove_orphans(self, age_s: float) -> int:
        log = self._files.listed(_LOG)
        return remove_strays(self._files, self._referenced(log), age_s) if log else 0

    def _referenced(self, log: Sequence[FileInfo]) -> set[str]:
        """Every file that Delta's log has ever named and not forgotten: what it removes, it removes itself.

        Merges replace files all the time. Of those the checkpoints remember longer than any version can be read.
        """
        table = self._table or self._opened()
        is_ours = self._is_merged and self._kept_versions(table) is not None
        kinds = ("add",) if is_ours else ("add", "remove")
        return named_in_commits(self._files, log) | named_in_checkpoints(self._files, log, kinds)

    def _opened(self) -> LakeTable:
        """Read from the log, starting at the last checkpoint."""
        deltalake = imported_deltalake()
        root, options = self._files.root, self._files.delta_options
        has_log = self._files.exists(_LOG) and deltalake.DeltaTable.is_deltatable(root, options)
        self._table = deltalake.DeltaTable(root, storage_options=options) if has_log else None
        self._read_from = 0 if self._table is None else self._table.version()
        return self._table

    def _followed(self) -> LakeTable:
        """The open table, updated from the log; None if opening it again is cheaper. An update costs more with each
        version since the table was opened, because it never starts at a later checkpoint.
        """
        table = self._table
        if table is None or table.version() - self._read_from >= _CHECKPOINT_EVERY:
            return None
        table.update_incremental()
        return table

    def _evolve(self, evolution: Evolution) -> None:
        """Change columns, in a commit before that of the files. A micro-batch that is killed in between finds the new
        columns.
        """
        if not evolution.changes:
            return
        table = self._table or self._opened()
        schema = arrow_schema(evolution.columns)
        if evolution.widened:
            self._table = None
            self._rewrite(table, schema)
            return
        changed = {change.path[0] for change in evolution.changes}
        fields = imported_deltalake().Schema.from_arrow(schema).fields
        table.alter.add_columns([field for field in fields if field.name in changed])

    def _rewrite(self, table: LakeTable, schema: pa.Schema) -> None:
        """Rewrite all rows with wider types, in one commit: deltalake cannot declare a column wider than its files."""
        import pyarrow as pa

        batches = table.to_pyarrow_dataset().to_batches()
        rows = pa.RecordBatchReader.from_batches(schema, (with_schema(batch, schema) for batch in batches))
        imported_deltalake().write_deltalake(
            table,
            rows,
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=self._partition_by or None,
            post_commithook_properties=_hooks(),
        )

    def _commit(self, files: Sequence[StagedFile], columns: Struct, batch: BatchId) -> None:
        deltalake = imported_deltalake()
        schema = arrow_schema(columns)
        table = (
            self._table
            or self._opened()
            or deltalake.DeltaTable.create(
                self._files.root,
                schema=schema,
                partition_by=self._partition_by or None,
                configuration=_CONFIGURATION,
                raise_if_key_not_exists=False,
                storage_options=self._files.delta_options,
            )
        )
        # A failure leaves it in an unknown state; the next attempt reads the log again.
        self._table = None
        table.create_write_transaction(
            [self._add_action(file) for file in files],
            "append",
            schema,
            partition_by=self._partition_by,
            **_commit_options(batch),
        )
        table.update_incremental()
        self._after_commit(table)
        self._table = table

    def _after_commit(self, table: LakeTable) -> None:
        if table.version() % _CHECKPOINT_EVERY == 0:
            table.create_checkpoint()
            self._shorten_log(table)
        keep = self._kept_versions(table)
        if keep is not None:
            self._files.remove(self._replaced.due(keep + _CHECKPOINT_EVERY, time.monotonic()))

    def _kept_versions(self, table: LakeTable) -> int | None:
        """None for a table created by others: its history is not shortened."""
        is_ours = _CREATED_BY_PIPELINE in table.metadata().configuration
        return self._keep_versions or (KEEP_VERSIONS if is_ours else None)

    def _shorten_log(self, table: LakeTable) -> None:
        """Remove old log files: every open and every commit lists the log."""
        keep = self._kept_versions(table)
        if keep is None:
            return
        names = [each.name.removeprefix(f"{_LOG}/") for each in self._files.listed(_LOG)]
        self._files.remove(f"{_LOG}/{name}" for name in files_to_remove(names, table.version(), keep))

    def _add_action(self, file: StagedFile) -> AddAction:
        from deltalake.transaction import AddAction

        return AddAction(
            path=file.name,
            size=file.size,
            partition_values=dict(file.partition),
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=json.dumps({"numRecords": file.row_count}),
        )


def _names(table: LakeTable) -> list[str]:
    """The table's files. The log has names as URLs do; deltalake's own list leaves some characters escaped."""
    import pyarrow as pa

    return [unquote(name) for name in pa.table(table.get_add_actions())["path"].to_pylist()]


def _commit_options(batch: BatchId) -> dict[str, Any]:
    """The number of the micro-batch is part of the commit; the log is looked after by us."""
    from deltalake.transaction import CommitProperties, Transaction

    return {
        "commit_properties": CommitProperties(app_transactions=[Transaction(batch.query, batch.number)]),
        "post_commithook_properties": _hooks(),
    }


def _hooks() -> PostCommitHookProperties:
    from deltalake.transaction import PostCommitHookProperties

    return PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def imported_deltalake() -> ModuleType:
    try:
        import deltalake
    except ImportError:
        raise ConfigError("a delta sink needs the package deltalake; run: pip install 'ottla[pipelines]'") from None
    module: ModuleType = deltalake
    return module
