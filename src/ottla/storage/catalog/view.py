"""The contents of a catalog at one moment, and the contents after a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field

from ottla.core.errors import UnknownTopicId, UnknownTopicOrPartition
from ottla.storage.catalog.entries import (
    Acl,
    ConfigResource,
    DelegationToken,
    Entry,
    Quota,
    QuotaEntity,
    ResourceConfigs,
    ScramCredential,
    ScramMechanism,
    Topic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ottla.core.ids import TopicId

E = TypeVar("E", bound=Entry)
K = TypeVar("K")


class Change(Struct, frozen=True):
    """A changed entry: created if `before` is None, deleted if `after` is None."""

    before: Entry | None
    after: Entry | None


class CatalogView(Struct, frozen=True):
    """An immutable snapshot; keep a reference to it for consistent reads."""

    topics: Mapping[str, Topic] = field(default_factory=dict)
    topics_by_id: Mapping[TopicId, Topic] = field(default_factory=dict)
    topics_by_metric_name: Mapping[str, Topic] = field(default_factory=dict)
    credentials: Mapping[tuple[str, ScramMechanism], ScramCredential] = field(default_factory=dict)
    tokens: Mapping[str, DelegationToken] = field(default_factory=dict)
    """Delegation tokens by id."""
    acls: frozenset[Acl] = frozenset()
    quotas: Mapping[QuotaEntity, Quota] = field(default_factory=dict)
    configs: Mapping[ConfigResource, ResourceConfigs] = field(default_factory=dict)

    def topic(self, name: str) -> Topic:
        try:
            return self.topics[name]
        except KeyError:
            raise UnknownTopicOrPartition(f"no topic {name!r}") from None

    def topic_by_id(self, topic_id: TopicId) -> Topic:
        try:
            return self.topics_by_id[topic_id]
        except KeyError:
            raise UnknownTopicId(f"no topic with id {topic_id}") from None

    def after(self, changes: Sequence[Change]) -> CatalogView:
        return CatalogView(
            topics=_changed(self.topics, Topic, lambda topic: topic.name, changes),
            topics_by_id=_changed(self.topics_by_id, Topic, lambda topic: topic.id, changes),
            topics_by_metric_name=_changed(
                self.topics_by_metric_name, Topic, lambda topic: metric_name(topic.name), changes
            ),
            credentials=_changed(self.credentials, ScramCredential, lambda held: (held.user, held.mechanism), changes),
            tokens=_changed(self.tokens, DelegationToken, lambda token: token.id, changes),
            acls=_changed_acls(self.acls, changes),
            quotas=_changed(self.quotas, Quota, lambda quota: quota.entity, changes),
            configs=_changed(self.configs, ResourceConfigs, lambda held: held.resource, changes),
        )


def metric_name(topic_name: str) -> str:
    """A topic's name in metrics: Kafka's reporters replace dots."""
    return topic_name.replace(".", "_")


def _changed(table: Mapping[K, E], kind: type[E], key: Callable[[E], K], changes: Sequence[Change]) -> Mapping[K, E]:
    gone = [key(change.before) for change in changes if isinstance(change.before, kind)]
    come = {key(change.after): change.after for change in changes if isinstance(change.after, kind)}
    if not gone and not come:
        return table
    changed = dict(table)
    for key_gone in gone:
        if key_gone not in come:
            del changed[key_gone]
    changed.update(come)
    return changed


def _changed_acls(acls: frozenset[Acl], changes: Sequence[Change]) -> frozenset[Acl]:
    gone = frozenset(change.before for change in changes if isinstance(change.before, Acl))
    come = frozenset(change.after for change in changes if isinstance(change.after, Acl))
    return (acls - gone) | come if gone or come else acls
