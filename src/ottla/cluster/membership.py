"""This node's ephemeral registration in ZooKeeper.

These functions block on ZooKeeper: call them in a worker thread.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from ottla.cluster.nodes import broker_data, broker_path, folder_of_broker, partition_data, partition_path
from ottla.cluster.operations import Conflict, Create, Delete, Put
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ottla.cluster.mirror import Mirror
    from ottla.cluster.operations import Node
    from ottla.cluster.state import BrokerInfo, PartitionState
    from ottla.cluster.store import Store

_LOOK_AGAIN_S: Final = 0.2
_MOST_AT_ONCE: Final = 500


def wait_for_number(store: Store, broker: BrokerInfo, timeout_s: float) -> Node | None:
    """Wait until no other node is registered with this id; return this node's old entry. Raises ConfigError on timeout.

    An entry of the same data folder is from before a restart: the holder of the folder's lock may replace it.
    """
    waited_s = 0.0
    while (known := store.read(broker_path(broker.id))) is not None:
        if known.owner == store.session_id or folder_of_broker(known.data) == broker.folder:
            return known
        if waited_s > timeout_s:
            raise ConfigError(f"another node is registered with node id {broker.id}")
        threading.Event().wait(_LOOK_AGAIN_S)
        waited_s += _LOOK_AGAIN_S
    return None


def register(store: Store, mirror: Mirror, broker: BrokerInfo, timeout_s: float) -> None:
    """Register; raises ConfigError if another node has this id."""
    path, data = broker_path(broker.id), broker_data(broker)
    while True:
        known = wait_for_number(store, broker, timeout_s)
        try:
            if known is not None and known.owner == store.session_id:
                # From an attempt whose response was lost. Its start number may be outdated: leaders compare the number
                # with the catalog's before they add this node to an ISR.
                if known.data != data:
                    store.commit([Put(path, data, known.version)])
                break
            if known is not None:
                store.commit([Delete(path, known.version)])
            store.commit([Create(path, data, is_ephemeral=True)])
            break
        except Conflict:
            continue
    mirror.refresh([path], store.timeout_s)


def update_registration(store: Store, mirror: Mirror, broker: BrokerInfo) -> None:
    """Update this node's registration; does nothing if its session has ended."""
    path = broker_path(broker.id)
    while (known := store.read(path)) is not None and known.owner == store.session_id:
        try:
            store.commit([Put(path, broker_data(broker), known.version)])
            break
        except Conflict:
            continue
    mirror.refresh([path], store.timeout_s)


def unregister(store: Store, node_id: int) -> None:
    try:
        store.commit([Delete(broker_path(node_id))])
    except Conflict:
        return


def step_back(
    store: Store, mirror: Mirror, states: Iterable[PartitionState], rule: Callable[[PartitionState], PartitionState]
) -> int:
    """Leave the ISRs and leaderships that `rule` selects; returns the number of conflicts."""
    changes = [(state, after) for state in states if (after := rule(state)) is not state]
    misfits = sum(
        _commit_applicable(store, changes[first : first + _MOST_AT_ONCE])
        for first in range(0, len(changes), _MOST_AT_ONCE)
    )
    mirror.refresh([partition_path(before.key) for before, _ in changes], store.timeout_s)
    return misfits


def _commit_applicable(store: Store, changes: Iterable[tuple[PartitionState, PartitionState]]) -> int:
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
