"""The catalog's persistent record of a node: its number of starts, and the generation of its data folder.

These functions block on the catalog: call them in a worker thread.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.cluster.nodes import (
    DATA_FOLDERS,
    REGISTRATIONS,
    data_folder_path,
    from_json,
    registration_path,
    to_json,
)
from ottla.cluster.operations import ANY_VERSION, Conflict, Create, Disconnected, Put
from ottla.cluster.retrying import retried
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from ottla.cluster.store import Store
    from ottla.storage.folder.folder_identity import FolderIdentity

_logger: Final = logging.getLogger(__name__)


def recognise(store: Store, folder: FolderIdentity) -> None:
    """Give the folder another id if the catalog knows a more recent generation of it: it is an older copy."""
    try:
        known = retried(store, lambda: store.read(data_folder_path(folder.id)))
    except Disconnected as lost:
        raise ConfigError(f"could not read the catalog: the connection was lost: {lost}") from lost
    if known is not None and folder.generation < (noted := int(from_json(known.data)["generation"])):
        _logger.error(
            "the data folder is an older copy of folder %s (generation %d, the cluster has %d): "
            "its replicas rejoin the ISR when they have caught up",
            folder.id,
            folder.generation,
            noted,
        )
        folder.renew()


def fence(store: Store, node_id: int) -> int:
    """Invalidate decisions about earlier starts of this node; returns the number of this one."""
    path = registration_path(node_id)
    with suppress(Conflict):
        store.commit([Create(REGISTRATIONS)])
    with suppress(Conflict):
        store.commit([Create(path)])
    while True:
        known = store.read(path)
        version = 0 if known is None else known.version
        with suppress(Conflict):
            store.commit([Put(path, b"", version)])
            return version + 1


def mark(store: Store, node_id: int, folder: FolderIdentity) -> None:
    """Record, in the folder and then in the catalog, that every existing copy is older than the folder."""
    if not folder.raise_generation(folder.generation + 1):
        return
    path, data = data_folder_path(folder.id), to_json({"node": node_id, "generation": folder.generation})
    with suppress(Conflict):
        store.commit([Create(DATA_FOLDERS)])
    try:
        store.commit([Create(path, data)])
    except Conflict:
        store.commit([Put(path, data, ANY_VERSION)])
