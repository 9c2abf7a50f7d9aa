"""The interface of a catalog: SQLite on a single node, ZooKeeper in a cluster.

Reads are cheap: `view` is in memory and immutable, and every change replaces it, so that a caller can detect a change
with `is`. Changes are slow: they wait for a disk or a ZooKeeper ensemble.

Every change guarantees:

- It is atomic, and when its method returns it is durable and in `view`.
- It is decided on what is stored, not on the caller's view. Therefore topics are identified by id (a late
change does not affect a re-created topic) and maps are changed by an
`Edit` (a catalog shared by many nodes can retry it on fresher contents after a lost race).
- If the storage fails, it raises StorageError, `view` is unchanged, and a later change may succeed.
Whether the failed change reached the disk is known after the next change or restart at the latest.
- A change without effect returns without writing or notifying.

A catalog is not locked: its changes are made one at a time. `view` may be read from any thread meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from ottla.storage.catalog.view import CatalogView, Change

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.core.ids import TopicId
    from ottla.storage.catalog.acl_filter import AclFilter
    from ottla.storage.catalog.entries import (
        Acl,
        ConfigResource,
        DelegationToken,
        ProducerIdBlock,
        QuotaEntity,
        ScramCredential,
        ScramMechanism,
        Topic,
    )

V = TypeVar("V")

Edit: TypeAlias = Callable[[Mapping[str, V]], Mapping[str, V]]
"""Maps the old map to the new one. Pure, since it may be called again; an exception cancels the change."""

Listener: TypeAlias = Callable[[Change], None]

PRODUCER_ID_BLOCK = 1000


def edit_keys(put: Mapping[str, V] | None = None, delete: Collection[str] = ()) -> Edit[V]:
    """Create the simple edit: set some keys, delete others, keep the rest."""
    return lambda old: {key: value for key, value in old.items() if key not in delete} | dict(put or {})


class Catalog(Protocol):
    @property
    def cluster_id(self) -> str:
        """22 characters of URL-safe base64, generated when the catalog was created."""

    @property
    def view(self) -> CatalogView:
        """The committed contents, except very recent changes of other cluster nodes."""

    def listen(self, listener: Listener) -> None:
        """Notify `listener` of every later change, in order, once the change is in `view`.

        It is called where the change was made or received, possibly in another thread, must not
        raise, and must not change the catalog. A topic deleted and re-created faster than a cluster's catalog
        noticed is reported as one change to another id.
        """

    def create_topic(
        self,
        name: str,
        partitions: int,
        configs: Mapping[str, str] = ...,
        *,
        is_internal: bool = False,
        topic_id: TopicId | None = None,
    ) -> Topic:
        """Create a topic, with a new id unless one is given, as for a folder from another cluster.

        InvalidTopic: an illegal name, or one that differs from another topic's only by '.' for '_'. TopicAlreadyExists:
        the name, or the given id, is taken. InvalidPartitions: fewer than one.
        """

    def grow_topic(self, topic_id: TopicId, partitions: int) -> Topic:
        """Add partitions. UnknownTopicId: no such topic. InvalidPartitions: not more than the topic has."""

    def change_topic_configs(self, topic_id: TopicId, edit: Edit[str]) -> Topic:
        """Change a topic's configs, which the caller has validated. UnknownTopicId: no such topic."""

    def delete_topic(self, topic_id: TopicId) -> Topic:
        """Delete a topic and return it; its ACLs stay, as in Kafka. UnknownTopicId: no such topic."""

    def put_credential(self, credential: ScramCredential) -> None:
        """Add a credential, replacing the user's credential for the same mechanism."""

    def delete_credential(self, user: str, mechanism: ScramMechanism) -> None:
        """Delete a credential. ResourceNotFound: the user has none for this mechanism."""

    def put_token(self, token: DelegationToken) -> None:
        """Add a token, or replace its earlier state."""

    def delete_tokens(self, token_ids: Iterable[str]) -> None:
        """Delete tokens; ids of missing tokens are ignored."""

    def add_acls(self, acls: Iterable[Acl]) -> None:
        """Add ACLs; existing ones are kept. InvalidRequest: one is not specific, and none was added."""

    def delete_acls(self, wanted: AclFilter) -> frozenset[Acl]:
        """Delete the matching ACLs and return them, possibly none. InvalidRequest: the filter has an unknown code."""

    def change_quota(self, entity: QuotaEntity, edit: Edit[float]) -> None:
        """Change a quota; without limits it is deleted. InvalidRequest: an unknown entity type, or a limit that is not
        a number.
        """

    def change_configs(self, resource: ConfigResource, edit: Edit[str]) -> None:
        """Change the dynamic configs of a broker, of all brokers or of a group, but not of a topic."""

    def next_producer_ids(self, count: int = PRODUCER_ID_BLOCK) -> ProducerIdBlock:
        """Allocate a block of unique ids, which are never returned again, even if the caller fails before using
        them.
        """

    def reseal(self) -> None:
        """Re-encrypt encrypted contents with the newest key."""

    def close(self) -> None:
        """Close the catalog. Afterwards only `view` and `cluster_id` may be used."""
