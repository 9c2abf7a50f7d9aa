"""Adopts the folder of one broker for workers: its data becomes worker 0's.

Every step can be repeated, so a crash in the middle is harmless: the new catalog is completed first, then
files are moved, and the folder belongs to workers when the new catalog is moved to its place, last.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from msgspec import structs

from ottla.cluster.builtin.file import CatalogFile
from ottla.cluster.catalog_nodes import data_of, path_of
from ottla.cluster.nodes import (
    CLUSTER,
    CONTROLLER_EPOCH,
    FOLDERS,
    FORMAT,
    PARTITIONS,
    PRODUCER_IDS,
    partition_data,
    partition_path,
    partitions_path,
    to_json,
)
from ottla.cluster.operations import Node
from ottla.cluster.state import NO_NODE, PartitionState
from ottla.core.errors import DataDirError
from ottla.storage.catalog.database import CATALOG_FILE
from ottla.storage.catalog.sqlite import SqliteCatalog
from ottla.storage.files import sync_folder
from ottla.storage.folder import meta_properties
from ottla.storage.folder.checkpoints import LEADER_EPOCHS, read_epochs
from ottla.storage.folder.folder_keys import check_keys
from ottla.storage.folder.folder_lock import LOCK
from ottla.storage.folder.meta_properties import META_PROPERTIES, WORKERS_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.core.sealing import Sealer
    from ottla.storage.catalog.entries import Entry, Topic
    from ottla.storage.catalog.view import CatalogView

_UNDER_WAY: Final = ".adopting"
_HEIR: Final = 0


def is_of_one_broker(folder: Path) -> bool:
    """Also true during an unfinished adoption."""
    if (folder / WORKERS_FILE).exists():
        return False
    return any((folder / name).exists() for name in (META_PROPERTIES, CATALOG_FILE, _UNDER_WAY))


def adopt(folder: Path, sealer: Sealer | None) -> None:
    """The caller holds the lock on the folder. DataDirError if it cannot be adopted, and then nothing was changed."""
    under_way, heir = folder / _UNDER_WAY, folder / f"worker-{_HEIR}"
    if not (under_way / WORKERS_FILE).exists():
        _make_catalog(folder, under_way, sealer)
    heir.mkdir(exist_ok=True)
    for entry in sorted(folder.iterdir()):
        if entry.name not in (LOCK, _UNDER_WAY, heir.name):
            entry.rename(heir / entry.name)
    sync_folder(heir)
    (under_way / WORKERS_FILE).rename(folder / WORKERS_FILE)
    sync_folder(folder)
    shutil.rmtree(under_way)


def _make_catalog(folder: Path, under_way: Path, sealer: Sealer | None) -> None:
    shutil.rmtree(under_way, ignore_errors=True)
    meta = meta_properties.load(folder)
    if meta is None or not (folder / CATALOG_FILE).exists():
        raise DataDirError(f"{folder} is not a whole folder of one broker: serve it without --workers first")
    if meta.node_id != _HEIR:
        raise DataDirError(f"{folder} belongs to the node {meta.node_id}, and only a node {_HEIR} can become a worker")
    keys = check_keys(folder, None if sealer is None else sealer.ring)
    catalog = SqliteCatalog.open(folder, sealer, must_be_sealed=keys is not None and keys.has_sealed_catalog)
    try:
        nodes = dict(_nodes(folder, catalog, meta.directory_id))
        meta_properties.save(folder, structs.replace(meta, cluster_id=catalog.cluster_id))
    finally:
        catalog.close()
    draft = under_way / "draft"
    draft.mkdir(parents=True)
    file = CatalogFile(draft)
    file.write({path: Node(data, 0, file.first_change) for path, data in nodes.items()})
    file.close()
    (draft / WORKERS_FILE).rename(under_way / WORKERS_FILE)
    sync_folder(under_way)


def _nodes(folder: Path, catalog: SqliteCatalog, folder_id: str) -> Iterator[tuple[str, bytes]]:
    view = catalog.view
    yield CLUSTER, to_json({"id": catalog.cluster_id, "format": FORMAT})
    yield CONTROLLER_EPOCH, b"0"
    yield PRODUCER_IDS, to_json(catalog.next_producer_ids().first)
    for path in (*FOLDERS, PARTITIONS):
        yield path, b""
    for entry in _entries(view):
        yield path_of(entry), data_of(entry)
    for topic in view.topics.values():
        yield partitions_path(topic.id), b""
        for partition in range(topic.partitions):
            state = replace(_state(folder, topic, partition), folders=((_HEIR, folder_id),) if folder_id else ())
            yield partition_path(state.key), partition_data(state)


def _entries(view: CatalogView) -> Iterator[Entry]:
    yield from view.topics.values()
    yield from view.credentials.values()
    yield from view.acls
    yield from view.quotas.values()
    yield from view.configs.values()


def _state(folder: Path, topic: Topic, partition: int) -> PartitionState:
    """Without a leader: the first one gets a later epoch than all in the log."""
    noted = folder / f"{topic.name}-{partition}" / LEADER_EPOCHS
    epochs = read_epochs(noted) if noted.exists() else []
    epoch = max((each for each, _ in epochs), default=0)
    return PartitionState(topic.id, topic.name, partition, (_HEIR,), NO_NODE, epoch, (_HEIR,))
