"""Files in a table's folder that belong to nothing: left there by micro-batches that were killed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from ottla.spark.pipelines.tables.staging import OWN_FOLDER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

_LOGS: Final = ("_delta_log", "metadata")


def remove_strays(root: Path, known: Collection[str], age_s: float) -> int:
    """Remove Parquet files of that age which no log names, and what is left of staging."""
    before = time.time() - age_s
    named = {unquote(path) for path in known} | set(known)
    count = 0
    for file in list(_candidates(root)):
        if str(file) not in named and file.stat().st_mtime < before:
            file.unlink()
            count += file.suffix == ".parquet" and not file.name.startswith(".")
    return count


def remove_unused_metadata(folder: Path, used: Collection[str], age_s: float) -> None:
    """Remove manifests, manifest lists and versions that no snapshot of an Iceberg table needs any more."""
    before = time.time() - age_s
    for file in folder.glob("*"):
        is_ours = file.name.endswith((".avro", ".metadata.json"))
        if is_ours and str(file) not in used and file.stat().st_mtime < before:
            file.unlink(missing_ok=True)


def _candidates(root: Path) -> Iterator[Path]:
    for file in root.rglob("*"):
        parts = file.relative_to(root).parts
        if not file.is_file() or parts[0] in _LOGS:
            continue
        if file.suffix == ".parquet" or (parts[0] == OWN_FOLDER and file.suffix != ".json"):
            yield file
