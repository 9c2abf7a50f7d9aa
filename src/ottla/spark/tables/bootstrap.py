"""What a stream begins with: the files of one snapshot and the offsets after it, kept in the stream's checkpoint.

The files are given to Spark's file source as the log of a file sink (`_spark_metadata`), which that source reads
instead of listing a folder: so the stream has exactly these files, wherever they are, and no later ones.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.spark.tables.folder import Folder

_PIN: Final = "ottla-table/bootstrap.json"
FILES: Final = "ottla-table/files"
_SINK_LOG: Final = f"{FILES}/_spark_metadata/0"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Bootstrap:
    topic: str
    snapshot_id: int | None
    topic_id: str
    partitions: dict[str, int]
    """The first offset after the snapshot, by partition."""
    has_files: bool
    version: int = _VERSION


def pinned(checkpoint: Folder, topic: str) -> Bootstrap | None:
    """What the query of this checkpoint began with; None if it has not begun."""
    # The file source writes its log before Spark writes the offsets of a batch.
    has_begun = checkpoint.has_files("offsets") or checkpoint.has_files("sources/0")
    if not has_begun:
        return None
    text = checkpoint.read(_PIN)
    if text is None:
        raise OttlaError(f"checkpoint {checkpoint.path} belongs to another query, not to one of a table; use a new one")
    given: dict[str, Any] = json.loads(text)
    if given.get("version") != _VERSION or given.get("topic") != topic:
        raise OttlaError(f"checkpoint {checkpoint.path} belongs to topic {given.get('topic')}; use a new one")
    return Bootstrap(**given)


def pin(checkpoint: Folder, bootstrap: Bootstrap, files: Mapping[str, int]) -> None:
    checkpoint.write(_SINK_LOG, sink_log(files))
    checkpoint.write(_PIN, json.dumps(asdict(bootstrap)))


def sink_log(files: Mapping[str, int]) -> str:
    """The size by address, in the format of Spark's file sink.

    All have the same time: the source would ignore files a week older than the newest one.
    """
    entries = (
        {
            "path": path if "://" in path else f"file://{path}",
            "size": size,
            "isDir": False,
            "modificationTime": 0,
            "blockReplication": 1,
            "blockSize": size,
            "action": "add",
        }
        for path, size in sorted(files.items())
    )
    return "\n".join(["v1", *map(json.dumps, entries)])
