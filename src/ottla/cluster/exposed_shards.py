"""Topics exposed over DMQP, in ZooKeeper, in the layout of DMQ clients.

/dmqp/topics/NAME                              the exposed topic and the node that serves it, as JSON
/dmqp/topics/NAME/serving                      ephemeral: the id of the node that serves the shards
/dmqp/topics/NAME/producer                     the producer id and epoch of the serving node's pushes
/dmqp/topics/NAME/sequence_id                  the next sequence id when the shards were last bound
/dmqp/topics/NAME/consumers/CONSUMER           ephemeral, of the serving node
/dmqp/topics/NAME/shards/N/leader/HOST:PORT    ephemeral
/dmqp/topics/NAME/shards/N/replicas/HOST:PORT  ephemeral: where the shard can be read, which is its leader

These functions block on ZooKeeper: call them in a worker thread.
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
_CLAIM_TRIES: Final = 3


def prepare(store: Store) -> None:
    """Create the parent nodes if they are missing, also in clusters of older releases."""
    for path in (_ROOT, EXPOSED):
        if store.read(path) is None:
            _try(store, Create(path))


class ExposedShards:
    def __init__(self, store: Store, mirror: Mirror) -> None:
        self._store = store
        self._mirror = mirror

    def known(self) -> dict[str, bytes]:
        """The exposed topics by name, from the copy in memory."""
        start = len(EXPOSED) + 1
        nodes = tuple(self._mirror.nodes.items())
        return {path[start:]: node.data for path, node in nodes if path.startswith(f"{EXPOSED}/")}

    def listen(self, changed: Callable[[], None]) -> None:
        """Register a listener, which is called in the mirror's thread."""

        def learnt(nodes: Mapping[str, Node | None]) -> None:
            if any(path.startswith(f"{EXPOSED}/") for path in nodes):
                changed()

        self._mirror.listen(learnt)

    def put(self, topic: str, data: bytes) -> None:
        path = f"{EXPOSED}/{topic}"
        if not _try(self._store, Create(path, data)):
            _try(self._store, Put(path, data, ANY_VERSION))
        self._mirror.refresh([path], self._store.timeout_s)

    def claim(self, topic: str, node_id: int) -> bool:
        """Try to become the node that serves the shards. Returns False while another node still serves them."""
        path = _serving(topic)
        mine = str(node_id).encode()
        for _ in range(_CLAIM_TRIES):
            if _try(self._store, Create(path, mine, is_ephemeral=True)):
                return True
            holder = _read(self._store, path)
            if holder is not None and holder.data != mine:
                return False
            # The node belongs to an earlier session of this node, or is already deleted.
            _try(self._store, Delete(path))
        return False  # the topic is no longer exposed, or changes hands

    def release(self, topic: str, node_id: int) -> None:
        """Release the claim: no operation of this node on the shards is in progress any more."""
        holder = _read(self._store, _serving(topic))
        if holder is not None and holder.data == str(node_id).encode():
            _try(self._store, Delete(_serving(topic)))

    def producer(self, topic: str) -> Node | None:
        """The producer id and epoch of the last serving node's pushes."""
        return _read(self._store, _producer(topic))

    def put_producer(self, topic: str, data: bytes, version: int) -> bool:
        """Store the producer; returns False if it was changed since `version`, where -1 means that there was none."""
        path = _producer(topic)
        return _try(self._store, Create(path, data) if version < 0 else Put(path, data, version))

    def announce(self, topic: str, before: Sequence[str], endpoints: Sequence[str], sequence: int) -> None:
        """Move each shard to its new endpoint."""
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
        self._delete(
            (f"{base}/shards", f"{base}/consumers", f"{base}/sequence_id", _producer(topic), _serving(topic), base)
        )
        self._mirror.refresh([base], self._store.timeout_s)

    def _delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            _try(self._store, Delete(path))


def _serving(topic: str) -> str:
    return f"{EXPOSED}/{topic}/serving"


def _producer(topic: str) -> str:
    return f"{EXPOSED}/{topic}/producer"


def _endpoint_paths(base: str, endpoints: Sequence[str]) -> list[str]:
    return [
        f"{base}/shards/{shard}/{kind}/{endpoint}"
        for shard, endpoint in enumerate(endpoints)
        for kind in ("leader", "replicas")
    ]


def _name(consumer: str) -> str:
    """Escape the name: a slash would start a child node."""
    return consumer.replace("/", "_")


def _read(store: Store, path: str) -> Node | None:
    try:
        return store.read(path)
    except Disconnected as lost:
        raise StorageError(f"ZooKeeper does not respond: {lost}") from lost


def _try(store: Store, operation: Operation) -> bool:
    """Returns whether it succeeded; a node that already exists or is already deleted is not an error."""
    try:
        store.commit([operation])
    except Conflict:
        return False
    except Disconnected as lost:
        raise StorageError(f"ZooKeeper does not respond: {lost}") from lost
    return True
