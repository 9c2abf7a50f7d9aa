"""The interface of a catalog: on one node SQLite, in a cluster ZooKeeper.

Reading is free: `view` is in memory and immutable, and every change replaces it, so that a
caller can detect a change with `is`. Changing is slow: it waits for a disk or an ensemble.

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
    """The simple edit: set some keys, delete others, keep the rest."""
    return lambda old: {key: value for key, value in old.items() if key not in delete} | dict(put or {})


class Catalog(Protocol):
    @property
    def cluster_id(self) -> str:
        """22 characters of URL-safe base64, generated when the catalog was created."""

    @property
    def view(self) -> CatalogView:
        """Everything that is committed, except very recent changes of a cluster's other nodes."""

    def listen(self, listener: Listener) -> None:
        """Notify `listener` of every later change, in order, once it is in `view`.

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
        """With a new id unless one is given, as for a folder from another cluster.

        InvalidTopic: an illegal name, or one that differs from another topic's only by '.' for '_'.
        TopicAlreadyExists: the name, or the given id, is taken. InvalidPartitions: fewer than one.
        """

    def grow_topic(self, topic_id: TopicId, partitions: int) -> Topic:
        """UnknownTopicId: no such topic. InvalidPartitions: not more than it has."""

    def change_topic_configs(self, topic_id: TopicId, edit: Edit[str]) -> Topic:
        """UnknownTopicId: no such topic. Configs are validated by the caller."""

    def delete_topic(self, topic_id: TopicId) -> Topic:
        """UnknownTopicId: no such topic. Returns the deleted topic; its ACLs stay, as in Kafka."""

    def put_credential(self, credential: ScramCredential) -> None:
        """Replaces the user's credential for the same mechanism."""

    def delete_credential(self, user: str, mechanism: ScramMechanism) -> None:
        """ResourceNotFound: the user has none for it."""

    def put_token(self, token: DelegationToken) -> None:
        """Takes the place of an earlier state of the same token."""

    def delete_tokens(self, token_ids: Iterable[str]) -> None:
        """Those that do not exist are ignored."""

    def add_acls(self, acls: Iterable[Acl]) -> None:
        """Existing ones are kept. InvalidRequest: one is not specific, and none was added."""

    def delete_acls(self, wanted: AclFilter) -> frozenset[Acl]:
        """Returns the deleted ones, possibly none. InvalidRequest: the filter has an unknown code."""

    def change_quota(self, entity: QuotaEntity, edit: Edit[float]) -> None:
        """Without limits it is deleted. InvalidRequest: an unknown entity type, or a limit that is not a number."""

    def change_configs(self, resource: ConfigResource, edit: Edit[str]) -> None:
        """The dynamic configs of a broker, of all brokers, of a group, …; not those of a topic."""

    def next_producer_ids(self, count: int = PRODUCER_ID_BLOCK) -> ProducerIdBlock:
        """Unique ids, never returned again, even if the caller fails before using them."""

    def reseal(self) -> None:
        """Re-encrypt encrypted contents with the newest key."""

    def close(self) -> None:
        """Afterwards only `view` and `cluster_id` may be used."""
