"""Unreferenced files at a table's root, left by killed micro-batches."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from ottla.spark.pipelines.tables.staging import OWN_FOLDER

if TYPE_CHECKING:
    from collections.abc import Collection

    from ottla.spark.pipelines.stores.files import Files

_LOGS: Final = ("_delta_log", "metadata")


def remove_strays(files: Files, known: Collection[str], age_s: float) -> int:
    """Remove Parquet files of this age that no log references, and leftover staging files."""
    before = time.time() - age_s
    named = {unquote(path) for path in known} | set(known)
    old = [
        each.name
        for each in files.listed()
        if each.modified_s < before and each.name not in named and _may_be_removed(each.name)
    ]
    files.remove(old)
    return sum(map(is_data, old))


def remove_unused_metadata(files: Files, used: Collection[str], age_s: float) -> None:
    """Remove manifests, manifest lists and versions that no snapshot of an Iceberg table needs any more."""
    before = time.time() - age_s
    files.remove(
        each.name
        for each in files.listed()
        if each.name.endswith((".avro", ".metadata.json")) and each.name not in used and each.modified_s < before
    )


def is_data(name: str) -> bool:
    file = name.rpartition("/")[2]
    return file.endswith(".parquet") and not file.startswith(".")


def _may_be_removed(name: str) -> bool:
    top = name.partition("/")[0]
    if top in _LOGS:
        return False
    return name.endswith(".parquet") or (top == OWN_FOLDER and not name.endswith(".json"))
