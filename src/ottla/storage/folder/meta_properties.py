"""`meta.properties`: the identity of the folder. Kafka's file, version 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ottla.core.errors import DataDirError
from ottla.core.ids import TopicId
from ottla.storage.files import replace_file

if TYPE_CHECKING:
    from pathlib import Path

META_PROPERTIES: Final = "meta.properties"
WORKERS_FILE: Final = "workers.sqlite"
"""The catalog of workers, beside their folders."""
_VERSION: Final = "1"


class MetaProperties(Struct, frozen=True, kw_only=True):
    cluster_id: str
    node_id: int
    directory_id: str
    is_new: bool = False
    """Whether the folder was empty before."""


def load_or_create(folder: Path, *, cluster_id: str | None = None, node_id: int = 0) -> MetaProperties:
    """The folder's identity; an empty folder is initialized. Raises DataDirError for a foreign one."""
    known = load(folder)
    if known is not None:
        return known
    # Ids have the form of topic ids: 16 random bytes in URL-safe base64.
    meta = MetaProperties(
        cluster_id=cluster_id or str(TopicId.random()),
        node_id=node_id,
        directory_id=str(TopicId.random()),
        is_new=True,
    )
    save(folder, meta)
    return meta


def save(folder: Path, meta: MetaProperties) -> None:
    text = (
        f"version={_VERSION}\ncluster.id={meta.cluster_id}\nnode.id={meta.node_id}\ndirectory.id={meta.directory_id}\n"
    )
    replace_file(folder / META_PROPERTIES, text.encode())


def load(folder: Path) -> MetaProperties | None:
    """The folder's identity; None if it is empty. Raises DataDirError for a foreign one."""
    path = folder / META_PROPERTIES
    if path.exists():
        return _parse(path)
    if (folder / WORKERS_FILE).exists():
        raise DataDirError(f"{folder} belongs to workers; use --workers with the same number as before")
    strangers = sorted(entry.name for entry in folder.iterdir() if not may_be_in_an_empty_folder(entry.name))
    if strangers:
        raise DataDirError(
            f"{folder} is not empty and not a data folder (it has {strangers[0]!r} but no {META_PROPERTIES}); "
            "choose an empty folder"
        )
    return None


def may_be_in_an_empty_folder(name: str) -> bool:
    # lost+found is in every new file system; the .tmp file is from an interrupted start.
    return name.startswith(".") or name in ("lost+found", f"{META_PROPERTIES}.tmp")


def _parse(path: Path) -> MetaProperties:
    try:
        fields = dict(_field(line) for line in path.read_text("utf-8").splitlines() if _is_field(line))
        version = fields.get("version")
        if version != _VERSION:
            raise DataDirError(f"{path} has version {version}; this release supports version {_VERSION}")
        return MetaProperties(
            cluster_id=fields["cluster.id"],
            node_id=int(fields["node.id"]),
            directory_id=fields.get("directory.id", ""),
        )
    except KeyError as missing:
        raise DataDirError(f"{path} has no {missing.args[0]}") from None
    except (ValueError, OSError) as wrong:
        raise DataDirError(f"{path} cannot be read: {wrong}") from None


def _is_field(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith(("#", "!"))


def _field(line: str) -> tuple[str, str]:
    name, value = line.split("=", 1)
    # Java escapes characters that could end a name with a backslash.
    return name.strip(), value.strip().replace("\\", "")
