"""A folder of Parquet files that any reader can read: every file in it is part of the table, and none is duplicated.

A plain folder has no log that lists its files. So a plan of the change is written first (`_ottla/QUERY.json`), which
the next run completes if this process dies in between. An object store has no rename: a file is copied, and then the
staged file is removed. Both steps can be repeated.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ottla.columns.abilities import ANY
from ottla.columns.arrow_types import arrow_columns
from ottla.columns.evolution import TableColumns
from ottla.columns.types import as_json, columns_of, struct_of
from ottla.spark.pipelines.tables.interface import CleanupResult
from ottla.spark.pipelines.tables.merging import folder_of, groups_to_merge, merge, rewrite_wider, small_files
from ottla.spark.pipelines.tables.staging import OWN_FOLDER, BatchId, Staging, clear, stage
from ottla.spark.pipelines.tables.strays import is_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from ottla.columns.evolution import Evolution
    from ottla.columns.types import Struct
    from ottla.spark.pipelines.stores.files import FileInfo, Files
    from ottla.spark.pipelines.tables.staging import StagedFile

_MERGE: Final = f"{OWN_FOLDER}/merge.json"
_COLUMNS: Final = f"{OWN_FOLDER}/columns.json"
"""The columns of all files: a plain folder does not store them elsewhere."""


class ParquetTable:
    def __init__(self, files: Files, partition_by: Sequence[str] = ()) -> None:
        self._files = files
        self._partition_by = tuple(partition_by)
        self._plan_version: str | None = None
        """Version of the plan that was read last; a commit fails if another process has replaced it."""

    def has(self, batch: BatchId) -> bool:
        found = self._files.read(_plan_name(batch))
        self._plan_version = None if found is None else found.version
        plan = None if found is None else json.loads(found.data)
        if plan is None or plan["batch"] < batch.number:
            return False
        if plan["batch"] == batch.number:
            self._carry_out(plan)
            clear(self._files, batch)
        return True

    def columns(self) -> TableColumns | None:
        kept = self._read(_COLUMNS)
        if kept is not None:
            return TableColumns(columns_of(kept))
        return self._columns_of_files()

    def _columns_of_files(self) -> TableColumns | None:
        """The columns of a folder that was written by another program, or before columns were stored."""
        import pyarrow.parquet as pq

        by_age = sorted(self._data_files(), key=lambda file: file.modified_s)
        schemas = (arrow_columns(pq.read_schema(self._files.source(each.name))) for each in by_age)
        found = {field.name: field.type for columns in schemas for field in columns.fields}
        # Their values are in the names of folders, and their types are not.
        found |= dict.fromkeys(self._partition_by, ANY)
        return TableColumns(struct_of(found.items())) if by_age else None

    def stage(self, frame: DataFrame, batch: BatchId) -> list[StagedFile]:
        return stage(frame, self._files, batch, Staging(self._partition_by, counts_all_files=True))

    def commit(self, files: Sequence[StagedFile], batch: BatchId, evolution: Evolution) -> int:
        moves = [[each.staged, each.name] for each in files]
        wider = self._widened(batch, evolution)
        moves += [[staged, name] for _, staged, name in wider]
        # From here on the micro-batch counts as written, and only what the plan says remains to be done.
        plan = {"batch": batch.number, "moves": moves, "columns": as_json(evolution.columns)}
        if wider:
            plan["remove"] = [old for old, _, _ in wider]
        self._files.replace_version(_plan_name(batch), json.dumps(plan).encode(), self._plan_version)
        self._carry_out(plan)
        clear(self._files, batch)
        return sum(each.row_count for each in files)

    def _widened(self, batch: BatchId, evolution: Evolution) -> list[tuple[str, str, str]]:
        """Files with narrower types, rewritten beside the table: the replaced file, the new one and its name. They must
        be rewritten, because readers apply the types of one file to all.
        """
        if not evolution.widened:
            return []
        self._finish_merge()
        found = []
        for number, name in enumerate(each.name for each in self._data_files()):
            staged = f"{OWN_FOLDER}/{batch.query}-{batch.number}-wider-{number}.parquet"
            if rewrite_wider(self._files, name, staged, evolution):
                found.append((name, staged, f"{folder_of(name)}{batch.prefix}w{number}.parquet"))
        return found

    def files(self) -> list[str]:
        return [self._files.place(each.name) for each in self._data_files()]

    def tidy(self, *, target_file_bytes: int, orphan_age_s: float) -> CleanupResult:
        self._finish_merge()
        merged = new = 0
        listed = self._data_files()
        # Read after the files were listed: an unfinished copy may be repeated, and is not merged.
        unfinished = self._unfinished()
        small = small_files(self._files, [each for each in listed if each.name not in unfinished], target_file_bytes)
        for number, group in enumerate(groups_to_merge(small, target_file_bytes)):
            name = f"merged-{time.time_ns():x}-{number}.parquet"
            staged = f"{OWN_FOLDER}/{name}"
            merge(self._files, group, staged)
            self._write(_MERGE, {"remove": group, "moves": [[staged, folder_of(group[0]) + name]]})
            self._finish_merge()
            merged += len(group)
            new += 1
        return CleanupResult(merged, new, self.remove_orphans(orphan_age_s))

    def _data_files(self) -> list[FileInfo]:
        return sorted(each for each in self._files.listed() if is_data(each.name) and not _is_own(each.name))

    def _unfinished(self) -> set[str]:
        """Files whose staged copies still exist, and files that a plan replaces."""
        own = self._files.listed(OWN_FOLDER)
        plans = [self._read(each.name) or {} for each in own if each.name.endswith(".json")]
        moves = [move for plan in plans for move in _moves(plan)]
        staged = {each.name for each in self._files.listed(OWN_FOLDER)} if moves else set()
        replaced = {name for plan in plans for name in plan.get("remove", ())}
        return {name for source, name in moves if source in staged} | replaced

    def _carry_out(self, plan: dict[str, Any]) -> None:
        if "columns" in plan:
            self._keep_columns(columns_of(plan["columns"]))
        self._files.remove(plan.get("remove", ()))
        for staged, name in plan["moves"]:
            with suppress(FileNotFoundError):  # it was moved by an earlier attempt
                self._files.move(staged, name)

    def _keep_columns(self, columns: Struct) -> None:
        new = as_json(columns)
        if self._read(_COLUMNS) != new:
            self._write(_COLUMNS, new)

    def _finish_merge(self) -> None:
        plan = self._read(_MERGE)
        if plan is not None:
            self._carry_out(plan)
            self._files.remove([_MERGE])

    def remove_orphans(self, age_s: float) -> int:
        """Remove files left beside the table by killed micro-batches and merges."""
        before = time.time() - age_s
        own = self._files.listed(OWN_FOLDER)
        plans = [each.name for each in own if each.name.endswith(".json")]
        planned = {source for name in plans for source, _ in _moves(self._read(name))}
        old = [each.name for each in own if each.modified_s < before]
        removed = [name for name in old if name not in planned and not name.endswith(".json")]
        self._files.remove(removed)
        return sum(map(is_data, removed))

    def _read(self, name: str) -> dict[str, Any] | None:
        found = self._files.read(name)
        return None if found is None else json.loads(found.data)

    def _write(self, name: str, content: object) -> None:
        self._files.replace(name, json.dumps(content).encode())


def _plan_name(batch: BatchId) -> str:
    return f"{OWN_FOLDER}/{batch.query}.json"


def _moves(plan: dict[str, Any] | None) -> list[tuple[str, str]]:
    return [(source, name) for source, name in (plan or {}).get("moves", ())]


def _is_own(name: str) -> bool:
    return name.startswith(f"{OWN_FOLDER}/")
