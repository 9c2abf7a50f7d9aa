"""`meta.properties`: what kind of folder this is and whose. Kafka's file, version 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.core.errors import DataDirError
from ottla.core.ids import TopicId
from ottla.storage.files import replace_file

if TYPE_CHECKING:
    from pathlib import Path

META_PROPERTIES: Final = "meta.properties"
_VERSION: Final = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    cluster_id: str
    node_id: int
    directory_id: str


def load_or_create(folder: Path, *, cluster_id: str | None = None, node_id: int = 0) -> MetaProperties:
    """What the folder says of itself; an empty folder is made ours. DataDirError for anybody else's."""
    path = folder / META_PROPERTIES
    if path.exists():
        return _parse(path)
    strangers = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    if strangers:
        raise DataDirError(
            f"{folder} is not empty and not a data folder (it holds {strangers[0]!r} but no {META_PROPERTIES}); "
            "choose an empty folder"
        )
    # Ids look like topic ids: 16 random bytes in URL-safe base64.
    meta = MetaProperties(
        cluster_id=cluster_id or str(TopicId.random()), node_id=node_id, directory_id=str(TopicId.random())
    )
    text = (
        f"version={_VERSION}\ncluster.id={meta.cluster_id}\nnode.id={meta.node_id}\ndirectory.id={meta.directory_id}\n"
    )
    replace_file(path, text.encode())
    return meta


def _parse(path: Path) -> MetaProperties:
    try:
        lines = path.read_text("utf-8").splitlines()
        fields = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        version = fields["version"]
        if version != _VERSION:
            raise DataDirError(f"{path} is of version {version}; this release reads version {_VERSION}")
        return MetaProperties(
            cluster_id=fields["cluster.id"],
            node_id=int(fields["node.id"]),
            directory_id=fields.get("directory.id", ""),
        )
    except (ValueError, KeyError, OSError) as wrong:
        raise DataDirError(f"{path} cannot be read: {wrong}") from None
