"""Being there: this node's entry in ZooKeeper, which goes with its session.

These wait for ZooKeeper, so they run in a worker thread.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from ottla.cluster.election import without
from ottla.cluster.nodes import broker_data, broker_path, folder_of_broker, partition_data, partition_path
from ottla.cluster.operations import Conflict, Create, Delete, Put
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.cluster.mirror import Mirror
    from ottla.cluster.state import BrokerInfo, ClusterView, PartitionState
    from ottla.cluster.store import Store

_LOOK_AGAIN_S: Final = 0.2
_MOST_AT_ONCE: Final = 500


def register(store: Store, mirror: Mirror, broker: BrokerInfo, folder_id: str, patience_s: float) -> None:
    """Be there. ConfigError: another node with this number is, and does not go away.

    An entry that this very folder made is from before a restart: whoever holds the folder's lock may remove it.
    """
    path = broker_path(broker.id)
    waited_s = 0.0
    while True:
        known = store.read(path)
        if known is not None and known.owner == store.session_id:
            break
        try:
            if known is not None and folder_of_broker(known.data) == folder_id:
                store.commit([Delete(path, known.version)])
            if known is None or folder_of_broker(known.data) == folder_id:
                store.commit([Create(path, broker_data(broker, folder_id), is_ephemeral=True)])
                break
        except Conflict:
            continue
        if waited_s > patience_s:
            raise ConfigError(f"another node with the number {broker.id} is in the cluster already")
        threading.Event().wait(_LOOK_AGAIN_S)
        waited_s += _LOOK_AGAIN_S
    mirror.refresh([path], store.timeout_s)


def update_registration(store: Store, mirror: Mirror, broker: BrokerInfo, folder_id: str) -> None:
    """Say something else of this node, which is registered; nothing if its session has ended meanwhile."""
    path = broker_path(broker.id)
    while (known := store.read(path)) is not None and known.owner == store.session_id:
        try:
            store.commit([Put(path, broker_data(broker, folder_id), known.version)])
            break
        except Conflict:
            continue
    mirror.refresh([path], store.timeout_s)


def unregister(store: Store, node_id: int) -> None:
    try:
        store.commit([Delete(broker_path(node_id))])
    except Conflict:
        return


def step_back(store: Store, mirror: Mirror, node_id: int, view: ClusterView) -> int:
    """Neither lead nor count as in sync, wherever another can take over. How often others were quicker.

    For a node that leaves in order: nobody has to notice first. And for one that comes back after a crash, before
    it registers: it may have lost what it had acknowledged, and the others have not.
    """
    left = {state.key: state for state in view.held_by(node_id) if node_id in state.isr}
    changes = [
        (state, after) for state in left.values() if (after := without(state, node_id, view.brokers)) is not state
    ]
    misfits = sum(
        _commit_those_that_fit(store, changes[first : first + _MOST_AT_ONCE])
        for first in range(0, len(changes), _MOST_AT_ONCE)
    )
    mirror.refresh([partition_path(before.key) for before, _ in changes], store.timeout_s)
    return misfits


def _commit_those_that_fit(store: Store, changes: Iterable[tuple[PartitionState, PartitionState]]) -> int:
    puts = [Put(partition_path(before.key), partition_data(after), before.version) for before, after in changes]
    misfits = 0
    try:
        store.commit(puts)
    except Conflict:
        for put in puts:
            try:
                store.commit([put])
            except Conflict:
                misfits += 1
    return misfits
