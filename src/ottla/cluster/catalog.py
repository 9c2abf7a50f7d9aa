"""The catalog of a cluster: stored in ZooKeeper, with a view in memory for reads.

A change is computed from the view, and written on condition that the nodes it was computed from are unchanged. After a
conflict, the view is updated and the change is computed again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import structs

from ottla.cluster.catalog_nodes import Layout, data_of, path_of, read_entry, read_layout, topic_path
from ottla.cluster.nodes import (
    CATALOG_FOLDERS,
    CLUSTER,
    CONTROLLER_EPOCH,
    FOLDERS,
    FORMAT,
    PARTITIONS,
    PRODUCER_IDS,
    TOKENS,
    from_json,
    to_json,
)
from ottla.cluster.operations import Conflict, Create, Delete, Disconnected, Node, Put
from ottla.core.errors import ApiError, ConfigError, ResourceNotFound, StorageError
from ottla.core.ids import TopicId
from ottla.storage.catalog.acl_filter import matching
from ottla.storage.catalog.catalog import PRODUCER_ID_BLOCK
from ottla.storage.catalog.entries import ProducerIdBlock, Quota, ResourceConfigs, Topic
from ottla.storage.catalog.rules import check_acl_filter, check_growth, check_new_acl, check_new_topic, check_quota
from ottla.storage.catalog.view import CatalogView, Change

if TYPE_CHECKING:
    from ottla.cluster.mirror import Mirror
    from ottla.cluster.store import Store
    from ottla.storage.catalog.acl_filter import AclFilter
    from ottla.storage.catalog.catalog import Edit, Listener
    from ottla.storage.catalog.entries import (
        Acl,
        ConfigResource,
        DelegationToken,
        Entry,
        QuotaEntity,
        ScramCredential,
        ScramMechanism,
    )

Decide: TypeAlias = Callable[[CatalogView], Sequence[Change]]

MAX_PRODUCER_ID: Final = 2**63 - 1
_NO_CONFIGS: Final[Mapping[str, str]] = {}
_MOST_TRIES: Final = 100
_NO_VERSION: Final = 2**31 - 1
_SECTIONS: Final = tuple(f"{folder}/" for folder in CATALOG_FOLDERS)


class SharedCatalog:
    """See `storage.catalog.catalog.Catalog` for the contract of each method.

    Listeners are called in the mirror's thread. Methods that change something block on ZooKeeper: do not call them in
    that thread, nor in an event loop.
    """

    def __init__(self, store: Store, mirror: Mirror, cluster_id: str) -> None:
        self._store = store
        self._mirror = mirror
        self._cluster_id = cluster_id
        self._view = CatalogView()
        self._entries: dict[str, Entry] = {}
        self._listeners: list[Listener] = []
        self._telling_in: int | None = None
        # This node's changes run one at a time: concurrent ones would only conflict.
        self._changing = threading.Lock()
        mirror.listen(self._learn)

    @property
    def cluster_id(self) -> str:
        return self._cluster_id

    @property
    def view(self) -> CatalogView:
        return self._view

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def create_topic(  # noqa: PLR0913 - the interface's own, and how it is spread
        self,
        name: str,
        partitions: int,
        configs: Mapping[str, str] = _NO_CONFIGS,
        *,
        is_internal: bool = False,
        topic_id: TopicId | None = None,
        layout: Layout | None = None,
    ) -> Topic:
        topic = Topic(name, topic_id or TopicId.random(), partitions, configs, is_internal)

        def decide(view: CatalogView) -> list[Change]:
            check_new_topic(view, topic)
            return [Change(None, topic)]

        self._change(decide, layout)
        return topic

    def refresh_topic(self, name: str) -> None:
        """Wait until the view of this topic is at least as new as this call."""
        try:
            self._mirror.refresh([topic_path(name)], self._store.timeout_s)
        except Disconnected as lost:
            raise StorageError(f"could not read the catalog: {lost}") from lost

    def grow_topic(self, topic_id: TopicId, partitions: int, assignments: Sequence[Sequence[int]] = ()) -> Topic:
        """Add partitions, optionally with manually chosen replicas."""

        def decide(view: CatalogView) -> list[Change]:
            topic = view.topic_by_id(topic_id)
            check_growth(topic, partitions)
            return [Change(topic, structs.replace(topic, partitions=partitions))]

        chosen = {partitions - at: tuple(nodes) for at, nodes in enumerate(reversed(assignments), 1)}
        return self._changed_topic(decide, topic_id, Layout(assignments=chosen))

    def change_topic_configs(self, topic_id: TopicId, edit: Edit[str]) -> Topic:
        def decide(view: CatalogView) -> list[Change]:
            topic = view.topic_by_id(topic_id)
            return [Change(topic, structs.replace(topic, configs=edit(topic.configs)))]

        return self._changed_topic(decide, topic_id)

    def _changed_topic(self, decide: Decide, topic_id: TopicId, layout: Layout | None = None) -> Topic:
        self._change(decide, layout)
        return self._view.topic_by_id(topic_id)

    def delete_topic(self, topic_id: TopicId) -> Topic:
        deleted: list[Topic] = []

        def decide(view: CatalogView) -> list[Change]:
            deleted[:] = [view.topic_by_id(topic_id)]
            return [Change(deleted[0], None)]

        self._change(decide)
        return deleted[0]

    def put_credential(self, credential: ScramCredential) -> None:
        key = (credential.user, credential.mechanism)
        self._change(lambda view: [Change(view.credentials.get(key), credential)])

    def delete_credential(self, user: str, mechanism: ScramMechanism) -> None:
        def decide(view: CatalogView) -> list[Change]:
            before = view.credentials.get((user, mechanism))
            if before is None:
                raise ResourceNotFound(f"user {user!r} has no {mechanism.name} credential")
            return [Change(before, None)]

        self._change(decide)

    def put_token(self, token: DelegationToken) -> None:
        self._change(lambda view: [Change(view.tokens.get(token.id), token)])

    def delete_tokens(self, token_ids: Iterable[str]) -> None:
        wanted = frozenset(token_ids)
        self._change(lambda view: [Change(view.tokens[each], None) for each in wanted & view.tokens.keys()])

    def add_acls(self, acls: Iterable[Acl]) -> None:
        wanted = frozenset(acls)
        for acl in wanted:
            check_new_acl(acl)
        self._change(lambda view: [Change(None, acl) for acl in wanted - view.acls])

    def delete_acls(self, wanted: AclFilter) -> frozenset[Acl]:
        check_acl_filter(wanted)
        found: list[frozenset[Acl]] = []

        def decide(view: CatalogView) -> list[Change]:
            found[:] = [matching(view.acls, wanted)]
            return [Change(acl, None) for acl in found[0]]

        self._change(decide)
        return found[0]

    def change_quota(self, entity: QuotaEntity, edit: Edit[float]) -> None:
        def decide(view: CatalogView) -> list[Change]:
            before = view.quotas.get(entity)
            after = Quota(entity, edit(before.limits if before else {}))
            check_quota(after)
            return [Change(before, after if after.limits else None)]

        self._change(decide)

    def change_configs(self, resource: ConfigResource, edit: Edit[str]) -> None:
        def decide(view: CatalogView) -> list[Change]:
            before = view.configs.get(resource)
            after = ResourceConfigs(resource, edit(before.configs if before else {}))
            return [Change(before, after if after.configs else None)]

        self._change(decide)

    def next_producer_ids(self, count: int = PRODUCER_ID_BLOCK) -> ProducerIdBlock:
        if count < 1:
            raise ValueError(f"count must be at least 1, got {count}")
        for _ in range(_MOST_TRIES):
            try:
                node = self._store.read(PRODUCER_IDS)
                if node is None:
                    raise StorageError(f"{PRODUCER_IDS} is missing in the catalog")
                first = int(from_json(node.data))
                if first > MAX_PRODUCER_ID - count:
                    raise ApiError("producer ids are exhausted")
                self._store.commit([Put(PRODUCER_IDS, to_json(first + count), node.version)])
            except Conflict:
                continue
            except Disconnected as lost:
                raise StorageError(f"could not allocate producer ids: {lost}") from lost
            return ProducerIdBlock(first, count)
        raise StorageError("could not allocate producer ids: too many conflicting updates")

    def reseal(self) -> None:
        """Nothing to do: passwords are always stored as verifiers, and ZooKeeper's ACLs protect them."""

    def close(self) -> None:
        """Nothing to do: the owner of the connection closes it."""

    # Changing

    def _change(self, decide: Decide, layout: Layout | None = None) -> None:
        if self._telling_in == threading.get_ident():
            raise RuntimeError("a listener of the catalog must not change it")
        with self._changing:
            for _ in range(_MOST_TRIES):
                try:
                    if self._try(decide, layout):
                        return
                except Disconnected as lost:
                    raise StorageError(f"could not update the catalog: {lost}") from lost
        raise StorageError("could not update the catalog: too many conflicting updates")

    def _try(self, decide: Decide, layout: Layout | None) -> bool:
        """Try to apply a change. Returns whether it was applied; otherwise the view now contains the conflicting
        changes.
        """
        changes = [change for change in decide(self._view) if change.before != change.after]
        if not changes:
            return True
        operations = [self._operation(change, layout) for change in changes]
        is_done = True
        try:
            self._store.commit(operations)
        except Conflict:
            is_done = False
        self._mirror.refresh([operation.path for operation in operations], self._store.timeout_s)
        return is_done

    def _operation(self, change: Change, layout: Layout | None) -> Create | Put | Delete:
        if change.before is None:
            assert change.after is not None  # noqa: S101 - for mypy: something changes
            return Create(path_of(change.after), data_of(change.after, layout))
        path = path_of(change.before)
        known = self._mirror.nodes.get(path)
        if known is None or read_entry(path, known.data) != change.before:
            # Newer than the view: a version that no node has, which causes a conflict.
            return Delete(path, _NO_VERSION)
        if change.after is None:
            return Delete(path, known.version)
        if isinstance(change.after, Topic):
            layout = _joined(read_layout(known.data), layout)
        return Put(path, data_of(change.after, layout), known.version)

    # Learning

    def _learn(self, changed: Mapping[str, Node | None]) -> None:
        changes = [
            change
            for path, node in changed.items()
            if path.startswith(_SECTIONS) and (change := self._change_at(path, node)) is not None
        ]
        if not changes:
            return
        # One assignment: a reader in another thread sees the old view or the new one.
        self._view = self._view.after(changes)
        self._tell(changes)

    def _change_at(self, path: str, node: Node | None) -> Change | None:
        before = self._entries.get(path)
        after = None if node is None else read_entry(path, node.data)
        if after is None:
            self._entries.pop(path, None)
        else:
            self._entries[path] = after
        return None if before == after else Change(before, after)

    def _tell(self, changes: list[Change]) -> None:
        self._telling_in = threading.get_ident()
        try:
            for change in changes:
                for listener in self._listeners:
                    listener(change)
        finally:
            self._telling_in = None


def _joined(before: Layout, added: Layout | None) -> Layout:
    if added is None:
        return before
    return replace(before, assignments={**before.assignments, **added.assignments})


def create_catalog(store: Store) -> str:
    """Create the catalog if necessary, and return the cluster id; raises ConfigError if it was written by a newer
    Ottla.
    """
    for _ in range(_MOST_TRIES):
        try:
            if (known := store.read(CLUSTER)) is not None:
                cluster_id = _cluster_id(known)
                # Catalogs of earlier releases have no version.
                if store.read(TOKENS) is None:
                    store.commit([Create(TOKENS)])
                return cluster_id
            about = {"id": TopicId.random().text, "format": FORMAT}
            folders = [Create(path) for path in (*FOLDERS, PARTITIONS)]
            counters = [Create(PRODUCER_IDS, to_json(0)), Create(CONTROLLER_EPOCH, b"0")]
            store.commit([Create(CLUSTER, to_json(about)), *folders, *counters])
        except Conflict:
            continue
    raise ConfigError(f"the ZooKeeper path contains other data than an Ottla cluster: there is no {CLUSTER}")


def _cluster_id(node: Node) -> str:
    about = from_json(node.data)
    if about["format"] > FORMAT:
        raise ConfigError(f"ZooKeeper contains format {about['format']} of a newer Ottla; this version reads {FORMAT}")
    return str(about["id"])
