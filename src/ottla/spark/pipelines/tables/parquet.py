"""A folder of Parquet files that anything can read: each file in it counts, and none is there twice.

A plain folder has no log that says which files count. So what is about to be put into it is written down first
(`_ottla/QUERY.json`), and is finished by whoever comes next if this process dies in between.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.pipelines.arrow_types import arrow_columns
from ottla.spark.pipelines.evolution.abilities import ANY
from ottla.spark.pipelines.evolution.rules import TableColumns
from ottla.spark.pipelines.evolution.types import as_json, columns_of, struct_of
from ottla.spark.pipelines.tables.interface import Tidied
from ottla.spark.pipelines.tables.merging import data_file, groups_to_merge, merge
from ottla.spark.pipelines.tables.staging import OWN_FOLDER, BatchId, clear, stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from ottla.spark.pipelines.evolution.rules import Evolution
    from ottla.spark.pipelines.evolution.types import Struct
    from ottla.spark.pipelines.tables.staging import StagedFile

_MERGE: Final = "merge.json"
_COLUMNS: Final = "columns.json"
"""What the files of the folder have in common: a plain folder says it nowhere else."""


class ParquetTable:
    def __init__(self, path: str, partition_by: Sequence[str] = ()) -> None:
        self._root = Path(path)
        self._partition_by = tuple(partition_by)

    def has(self, batch: BatchId) -> bool:
        plan = _read(self._plan_file(batch))
        if plan is None or plan["batch"] < batch.number:
            return False
        if plan["batch"] == batch.number:
            self._carry_out(plan)
            clear(self._root, batch)
        return True

    def columns(self) -> TableColumns | None:
        kept = _read(self._root / OWN_FOLDER / _COLUMNS)
        if kept is not None:
            return TableColumns(columns_of(kept))
        return self._columns_of_files()

    def _columns_of_files(self) -> TableColumns | None:
        """Of a folder that was written by something else, or before its columns were kept."""
        import pyarrow.parquet as pq

        files = sorted(self._data_files(), key=lambda file: file.stat().st_mtime)
        found = {field.name: field.type for file in files for field in arrow_columns(pq.read_schema(file)).fields}
        # Their values are in the names of folders, and their types are not.
        found |= dict.fromkeys(self._partition_by, ANY)
        return TableColumns(struct_of(found.items())) if files else None

    def stage(self, frame: DataFrame, batch: BatchId) -> list[StagedFile]:
        return stage(frame, self._root, batch, self._partition_by)

    def commit(self, files: Sequence[StagedFile], batch: BatchId, evolution: Evolution) -> int:
        moves = [[str(each.staged.relative_to(self._root)), each.name] for each in files]
        # From here on the micro-batch counts as written, and only what the plan says remains to be done.
        plan = {"batch": batch.number, "moves": moves, "columns": as_json(evolution.columns)}
        _write(self._plan_file(batch), plan)
        self._carry_out(plan)
        clear(self._root, batch)
        return sum(each.row_count for each in files)

    def files(self) -> list[str]:
        return [str(each) for each in self._data_files()]

    def tidy(self, *, target_file_bytes: int, orphan_age_s: float) -> Tidied:
        self._finish_merge()
        merged = new = 0
        files = map(data_file, self._data_files())
        for number, group in enumerate(groups_to_merge(files, target_file_bytes)):
            name = f"merged-{time.time_ns():x}-{number}.parquet"
            staged = self._root / OWN_FOLDER / name
            merge(group, staged)
            move = [str(staged.relative_to(self._root)), str((group[0].parent / name).relative_to(self._root))]
            remove = [str(each.relative_to(self._root)) for each in group]
            _write(self._root / OWN_FOLDER / _MERGE, {"remove": remove, "moves": [move]})
            self._finish_merge()
            merged += len(group)
            new += 1
        return Tidied(merged, new, self.remove_orphans(orphan_age_s))

    def _data_files(self) -> list[Path]:
        found = self._root.rglob("*.parquet")
        return sorted(file for file in found if OWN_FOLDER not in file.relative_to(self._root).parts)

    def _plan_file(self, batch: BatchId) -> Path:
        return self._root / OWN_FOLDER / f"{batch.query}.json"

    def _carry_out(self, plan: dict[str, Any]) -> None:
        if "columns" in plan:
            self._keep_columns(columns_of(plan["columns"]))
        for old in plan.get("remove", ()):
            (self._root / old).unlink(missing_ok=True)
        for staged, name in plan["moves"]:
            if (self._root / staged).exists():
                (self._root / name).parent.mkdir(parents=True, exist_ok=True)
                (self._root / staged).replace(self._root / name)

    def _keep_columns(self, columns: Struct) -> None:
        file = self._root / OWN_FOLDER / _COLUMNS
        new = as_json(columns)
        if _read(file) != new:
            _write(file, new)

    def _finish_merge(self) -> None:
        file = self._root / OWN_FOLDER / _MERGE
        plan = _read(file)
        if plan is not None:
            self._carry_out(plan)
            file.unlink()

    def remove_orphans(self, age_s: float) -> int:
        """What micro-batches and merges that were killed left behind, beside the table."""
        before = time.time() - age_s
        own = self._root / OWN_FOLDER
        planned = {self._root / move[0] for file in own.glob("*.json") for move in (_read(file) or {}).get("moves", ())}
        removed = 0
        for file in [each for each in own.rglob("*") if each.is_file() and each.suffix != ".json"]:
            if file not in planned and file.stat().st_mtime < before:
                file.unlink()
                removed += file.suffix == ".parquet" and not file.name.startswith(".")
        return removed


def _read(file: Path) -> dict[str, Any] | None:
    try:
        plan: dict[str, Any] = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return None
    return plan


def _write(file: Path, plan: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    with new.open("w", encoding="utf-8") as opened:
        json.dump(plan, opened)
        opened.flush()
        os.fsync(opened.fileno())
    new.replace(file)
