"""What a Delta log names, and which of its files are no longer needed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.spark.pipelines.stores.files import FileInfo, Files

_VERSIONED: Final = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\b.*\.parquet)")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")


def files_to_remove(names: Iterable[str], version: int, keep_versions: int) -> list[str]:
    """Commits and checkpoints that no readable version needs. A version needs the last checkpoint before it and the
    commits since then.
    """
    known = list(names)
    checkpoints = [int(match[1]) for name in known if (match := _CHECKPOINT.fullmatch(name))]
    base = max((each for each in checkpoints if each <= version - keep_versions), default=0)
    return [name for name in known if (match := _VERSIONED.fullmatch(name)) and int(match[1]) < base]


def named_in_commits(files: Files, log: Iterable[FileInfo]) -> set[str]:
    named: set[str] = set()
    for name in (each.name for each in log if each.name.endswith(".json")):
        found = files.read(name)
        for line in found.data.splitlines() if found is not None else ():
            action = json.loads(line)
            named |= {each["path"] for kind in ("add", "remove") if (each := action.get(kind)) is not None}
    return named


def named_in_checkpoints(files: Files, log: Iterable[FileInfo], kinds: Sequence[str]) -> set[str]:
    import pyarrow.parquet as pq

    named: set[str] = set()
    for name in (each.name for each in log if ".checkpoint" in each.name and each.name.endswith(".parquet")):
        table = pq.read_table(files.source(name), columns=[f"{kind}.path" for kind in kinds])
        for kind in kinds:
            if kind in table.column_names:
                named |= {each["path"] for each in table.column(kind).to_pylist() if each and each.get("path")}
    return named
