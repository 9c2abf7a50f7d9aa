"""The interface of a catalog: on one node SQLite, in a cluster ZooKeeper.

Reading is free: `view` is in memory and immutable, and every change puts a new one in its place, so that a
caller who kept the old one can tell by `is` whether anything changed. Changing is slow: a disk or an ensemble
has to answer.

What every change promises:

- It happens whole or not at all, and when its method returns it is durable and in `view`.
- It is decided on what is stored, not on what the caller last saw. That is why topics are named by id (one
  re-created under its name is not hit by a late change to its predecessor) and why maps are changed by an
  `Edit` (a catalog shared by many nodes can repeat it on fresher contents when it lost a race).
- If the storage refuses, it raises StorageError, `view` stays as it was, and a later change may succeed.
  Whether the refused change reached the disk is known after the next change or restart at the latest.
- One that alters nothing returns without writing or telling anybody.

A catalog is not locked: its changes are made one at a time. `view` may be read from anywhere meanwhile.
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
"""The old map in, the new one out. Pure, since it may be asked again; what it raises cancels the change."""

Listener: TypeAlias = Callable[[Change], None]

PRODUCER_ID_BLOCK = 1000


def edit_keys(put: Mapping[str, V] | None = None, delete: Collection[str] = ()) -> Edit[V]:
    """The plain edit: set some keys, delete others, leave the rest."""
    return lambda old: {key: value for key, value in old.items() if key not in delete} | dict(put or {})


class Catalog(Protocol):
    @property
    def cluster_id(self) -> str:
        """22 characters of URL-safe base64, drawn when the catalog was created and never changed."""

    @property
    def view(self) -> CatalogView:
        """Everything that is committed, except what a cluster's other nodes changed this instant."""

    def listen(self, listener: Listener) -> None:
        """Tell `listener` of every later change, in order, once `view` shows it.

        It is called where the change was made or learnt of, which need not be the caller's thread, must not
        raise, and must not change the catalog. A topic deleted and re-created faster than a cluster's catalog
        noticed is told as one change to another id.
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
        """Under a new id unless one is given, as for a folder that comes from elsewhere.

        InvalidTopic: an illegal name, or one that differs from another topic's only by '.' for '_'.
        TopicAlreadyExists: the name, or the given id, is taken. InvalidPartitions: fewer than one.
        """

    def grow_topic(self, topic_id: TopicId, partitions: int) -> Topic:
        """UnknownTopicId: there is none. InvalidPartitions: not more than it has."""

    def change_topic_configs(self, topic_id: TopicId, edit: Edit[str]) -> Topic:
        """UnknownTopicId: there is none. Whether a config is valid is for the caller to say."""

    def delete_topic(self, topic_id: TopicId) -> Topic:
        """UnknownTopicId: there is none. Gives what was deleted; its ACLs stay, as Kafka's do."""

    def put_credential(self, credential: ScramCredential) -> None:
        """Takes the place of the user's earlier credential for the same mechanism."""

    def delete_credential(self, user: str, mechanism: ScramMechanism) -> None:
        """ResourceNotFound: the user has none for it."""

    def put_token(self, token: DelegationToken) -> None:
        """Takes the place of an earlier state of the same token."""

    def delete_tokens(self, token_ids: Iterable[str]) -> None:
        """Those that do not exist are ignored."""

    def add_acls(self, acls: Iterable[Acl]) -> None:
        """Those that exist are left alone. InvalidRequest: one is not definite, and none was added."""

    def delete_acls(self, wanted: AclFilter) -> frozenset[Acl]:
        """Gives those it deleted, maybe none. InvalidRequest: the filter holds an unknown code."""

    def change_quota(self, entity: QuotaEntity, edit: Edit[float]) -> None:
        """Without limits it is gone. InvalidRequest: Kafka knows no such entity, or a limit is no number."""

    def change_configs(self, resource: ConfigResource, edit: Edit[str]) -> None:
        """The dynamic configs of a broker, of all brokers, of a group, …; not those of a topic."""

    def next_producer_ids(self, count: int = PRODUCER_ID_BLOCK) -> ProducerIdBlock:
        """Ids never handed out before and never again after, even if the caller dies before using them."""

    def reseal(self) -> None:
        """Encrypt anew, with the newest key, what is stored encrypted; nothing, where nothing is."""

    def close(self) -> None:
        """Afterwards only `view` and `cluster_id` may be used."""
