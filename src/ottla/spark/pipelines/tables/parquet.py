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

from ottla.spark.pipelines.tables.interface import Tidied
from ottla.spark.pipelines.tables.merging import data_file, groups_to_merge, merge
from ottla.spark.pipelines.tables.staging import OWN_FOLDER, BatchId, clear, put_in_place, stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

_MERGE: Final = "merge.json"


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

    def add(self, frame: DataFrame, batch: BatchId) -> int:
        files = stage(frame, self._root, batch, self._partition_by)
        moves = [[str(each.staged.relative_to(self._root)), each.name] for each in files]
        # From here on the micro-batch counts as written, and only what the plan says remains to be done.
        _write(self._plan_file(batch), {"batch": batch.number, "moves": moves})
        put_in_place(self._root, files)
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
        return Tidied(merged, new, self._remove_orphans(orphan_age_s))

    def _data_files(self) -> list[Path]:
        found = self._root.rglob("*.parquet")
        return sorted(file for file in found if OWN_FOLDER not in file.relative_to(self._root).parts)

    def _plan_file(self, batch: BatchId) -> Path:
        return self._root / OWN_FOLDER / f"{batch.query}.json"

    def _carry_out(self, plan: dict[str, Any]) -> None:
        for old in plan.get("remove", ()):
            (self._root / old).unlink(missing_ok=True)
        for staged, name in plan["moves"]:
            if (self._root / staged).exists():
                (self._root / name).parent.mkdir(parents=True, exist_ok=True)
                (self._root / staged).replace(self._root / name)

    def _finish_merge(self) -> None:
        file = self._root / OWN_FOLDER / _MERGE
        plan = _read(file)
        if plan is not None:
            self._carry_out(plan)
            file.unlink()

    def _remove_orphans(self, age_s: float) -> int:
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
