"""Topics that are exposed over DMQP, in ZooKeeper, in the layout that clients of DMQ know.

/dmqp/topics/NAME                              what is exposed and who serves it, as JSON
/dmqp/topics/NAME/sequence_id                  the next one when the shards were last bound
/dmqp/topics/NAME/consumers/CONSUMER           goes with the session of the node that serves
/dmqp/topics/NAME/shards/N/leader/HOST:PORT    the same
/dmqp/topics/NAME/shards/N/replicas/HOST:PORT  the same: where the shard can be read, which is at its leader

These wait for ZooKeeper, so they run in a worker thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.cluster.operations import ANY_VERSION, Conflict, Create, Delete, Disconnected, Put
from ottla.core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ottla.cluster.mirror import Mirror
    from ottla.cluster.operations import Node, Operation
    from ottla.cluster.store import Store

_ROOT: Final = "/dmqp"
EXPOSED: Final = f"{_ROOT}/topics"


def prepare(store: Store) -> None:
    """Make sure of the folder; in a cluster that is older than it, too."""
    for path in (_ROOT, EXPOSED):
        if store.read(path) is None:
            _try(store, Create(path))


class ExposedShards:
    def __init__(self, store: Store, mirror: Mirror) -> None:
        self._store = store
        self._mirror = mirror

    def known(self) -> dict[str, bytes]:
        """By topic, from the copy that is kept in memory."""
        start = len(EXPOSED) + 1
        nodes = tuple(self._mirror.nodes.items())
        return {path[start:]: node.data for path, node in nodes if path.startswith(f"{EXPOSED}/")}

    def listen(self, changed: Callable[[], None]) -> None:
        """Called in the mirror's thread."""

        def learnt(nodes: Mapping[str, Node | None]) -> None:
            if any(path.startswith(f"{EXPOSED}/") for path in nodes):
                changed()

        self._mirror.listen(learnt)

    def put(self, topic: str, data: bytes) -> None:
        path = f"{EXPOSED}/{topic}"
        if not _try(self._store, Create(path, data)):
            _try(self._store, Put(path, data, ANY_VERSION))
        self._mirror.refresh([path], self._store.timeout_s)

    def announce(self, topic: str, before: Sequence[str], endpoints: Sequence[str], sequence: int) -> None:
        """Each shard is at its endpoint from now on, and no more where it was before."""
        base = f"{EXPOSED}/{topic}"
        self._delete(_endpoint_paths(base, before))
        for path in (f"{base}/sequence_id", f"{base}/consumers", f"{base}/shards"):
            _try(self._store, Create(path))
        _try(self._store, Put(f"{base}/sequence_id", str(sequence).encode(), ANY_VERSION))
        for shard, _ in enumerate(endpoints):
            folder = f"{base}/shards/{shard}"
            for path in (folder, f"{folder}/leader", f"{folder}/replicas"):
                _try(self._store, Create(path))
        for path in _endpoint_paths(base, endpoints):
            _try(self._store, Create(path, is_ephemeral=True))

    def withdraw(self, topic: str, endpoints: Sequence[str]) -> None:
        self._delete(_endpoint_paths(f"{EXPOSED}/{topic}", endpoints))

    def change_consumers(self, topic: str, gone: Iterable[str], come: Iterable[str]) -> None:
        folder = f"{EXPOSED}/{topic}/consumers"
        self._delete(f"{folder}/{_name(each)}" for each in gone)
        for each in come:
            _try(self._store, Create(f"{folder}/{_name(each)}", is_ephemeral=True))

    def remove(self, topic: str, endpoints: Sequence[str], consumers: Iterable[str]) -> None:
        base = f"{EXPOSED}/{topic}"
        self.change_consumers(topic, consumers, ())
        self._delete(_endpoint_paths(base, endpoints))
        for shard, _ in enumerate(endpoints):
            folder = f"{base}/shards/{shard}"
            self._delete((f"{folder}/leader", f"{folder}/replicas", folder))
        self._delete((f"{base}/shards", f"{base}/consumers", f"{base}/sequence_id", base))
        self._mirror.refresh([base], self._store.timeout_s)

    def _delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            _try(self._store, Delete(path))


def _endpoint_paths(base: str, endpoints: Sequence[str]) -> list[str]:
    return [
        f"{base}/shards/{shard}/{kind}/{endpoint}"
        for shard, endpoint in enumerate(endpoints)
        for kind in ("leader", "replicas")
    ]


def _name(consumer: str) -> str:
    """A slash would be another folder."""
    return consumer.replace("/", "_")


def _try(store: Store, operation: Operation) -> bool:
    """Whether it fitted: what is there already, or gone already, is as it should be."""
    try:
        store.commit([operation])
    except Conflict:
        return False
    except Disconnected as lost:
        raise StorageError(f"ZooKeeper did not answer: {lost}") from lost
    return True
