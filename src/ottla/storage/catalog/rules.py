"""Validation shared by all catalogs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from ottla.core.errors import InvalidPartitions, InvalidRequest, InvalidTopic, TopicAlreadyExists
from ottla.core.ids import problem_with_topic_name
from ottla.core.security import CLUSTER_NAME
from ottla.storage.catalog.entries import (
    Acl,
    AclOperation,
    AclPermission,
    PatternType,
    Quota,
    QuotaEntityType,
    ResourceType,
    Topic,
)
from ottla.storage.catalog.view import CatalogView, metric_name

if TYPE_CHECKING:
    from ottla.storage.catalog.acl_filter import AclFilter

_QUOTA_ENTITIES: Final = (
    {QuotaEntityType.USER},
    {QuotaEntityType.CLIENT_ID},
    {QuotaEntityType.USER, QuotaEntityType.CLIENT_ID},
    {QuotaEntityType.IP},
)


def check_new_topic(view: CatalogView, topic: Topic) -> None:
    if (problem := problem_with_topic_name(topic.name)) is not None:
        raise InvalidTopic(problem)
    if topic.name in view.topics:
        raise TopicAlreadyExists(f"topic {topic.name!r} already exists")
    if (other := view.topics_by_metric_name.get(metric_name(topic.name))) is not None:
        raise InvalidTopic(f"topic {topic.name!r} and the existing {other.name!r} collide in metric names")
    if (other := view.topics_by_id.get(topic.id)) is not None:
        raise TopicAlreadyExists(f"topic {other.name!r} already has the id {topic.id}")
    if topic.partitions < 1:
        raise InvalidPartitions(f"a topic needs at least one partition, got {topic.partitions}")


def check_growth(topic: Topic, partitions: int) -> None:
    if partitions <= topic.partitions:
        raise InvalidPartitions(
            f"topic {topic.name!r} has {topic.partitions} partitions and can only get more, not {partitions}"
        )


def check_new_acl(acl: Acl) -> None:
    """As in Kafka's AclControlManager and AclApis: an ACL must be specific."""
    if acl.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise InvalidRequest(f"an ACL cannot have the resource type {acl.resource_type.name}")
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidRequest(f"an ACL cannot have the pattern type {acl.pattern_type.name}")
    if acl.operation in (AclOperation.UNKNOWN, AclOperation.ANY):
        raise InvalidRequest(f"an ACL cannot have the operation {acl.operation.name}")
    if acl.permission not in (AclPermission.ALLOW, AclPermission.DENY):
        raise InvalidRequest(f"an ACL cannot have the permission {acl.permission.name}")
    if not acl.resource_name:
        raise InvalidRequest("an ACL must name a resource")
    if acl.resource_type is ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        raise InvalidRequest(f"the cluster name in an ACL must be {CLUSTER_NAME!r}")


def check_acl_filter(wanted: AclFilter) -> None:
    if wanted.is_unknown:
        raise InvalidRequest("the ACL filter has an unknown code")


def check_quota(quota: Quota) -> None:
    """As in Kafka's ClientQuotaControlManager; valid keys per entity are checked by the handler."""
    types = {entity_type for entity_type, _ in quota.entity.parts}
    if types not in _QUOTA_ENTITIES or len(types) != len(quota.entity.parts):
        raise InvalidRequest("a quota entity must be a user, a client id, both, or an IP address")
    if any(name == "" for _, name in quota.entity.parts):
        raise InvalidRequest("a quota entity must not have an empty name")
    for key, limit in quota.limits.items():
        if math.isnan(limit):
            raise InvalidRequest(f"the quota {key} must be a number")
