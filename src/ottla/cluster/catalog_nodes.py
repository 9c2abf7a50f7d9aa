"""Conversion between catalog entries and ZooKeeper nodes."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, assert_never
from urllib.parse import quote

from ottla.cluster.decisions import WantedTopic
from ottla.cluster.nodes import ACLS, CONFIGS, CREDENTIALS, QUOTAS, TOKENS, TOPICS, from_json, to_json
from ottla.core.ids import TopicId
from ottla.storage.catalog.entries import (
    Acl,
    AclOperation,
    AclPermission,
    ConfigResource,
    ConfigScope,
    DelegationToken,
    Entry,
    PatternType,
    Quota,
    QuotaEntity,
    QuotaEntityType,
    ResourceConfigs,
    ResourceType,
    ScramCredential,
    ScramMechanism,
    Topic,
)
from ottla.storage.catalog.view import metric_name

if TYPE_CHECKING:
    from collections.abc import Mapping

UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
MIN_ISR: Final = "min.insync.replicas"
DRAINING: Final = "broker.draining"
"""Ottla's config of a drained node: it gets no new replicas, and leads only if no other replica can."""
_OF_A_NODE: Final = re.compile(rf"{CONFIGS}/{ConfigScope.BROKER.value}-(\d+)")


@dataclass(frozen=True, slots=True)
class Layout:
    """The replica assignment of a topic, which other catalogs do not have."""

    factor: int = 1
    assignments: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The replicas of partitions with a manual assignment."""


def topic_path(name: str) -> str:
    """Topic names that collide in metrics names share this key, so that only one of them can exist."""
    return f"{TOPICS}/{metric_name(name)}"


def path_of(entry: Entry) -> str:
    """The path of an entry: unique per entity, and the same for all its states."""
    match entry:
        case Topic():
            return topic_path(entry.name)
        case ScramCredential():
            return f"{CREDENTIALS}/{entry.mechanism.value}-{_safe(entry.user)}"
        case DelegationToken():
            return f"{TOKENS}/{_safe(entry.id)}"
        case Acl():
            return f"{ACLS}/{_digest(to_json(_acl(entry)))}"
        case Quota():
            return f"{QUOTAS}/{_digest(to_json(_parts(entry.entity)))}"
        case ResourceConfigs():
            return f"{CONFIGS}/{entry.resource.scope.value}-{_safe(entry.resource.name)}"
        case _:
            assert_never(entry)


def data_of(entry: Entry, layout: Layout | None = None) -> bytes:
    match entry:
        case Topic():
            return _topic_data(entry, layout or Layout())
        case ScramCredential():
            # Omitted if there is none: earlier releases do not know the field.
            expiry = [] if entry.expires_ms is None else [entry.expires_ms]
            keys = [entry.stored_key, entry.server_key]
            return to_json([entry.user, entry.mechanism, entry.salt, entry.iterations, *keys, *expiry])
        case DelegationToken():
            times = [entry.issued_ms, entry.expires_ms, entry.max_ms]
            return to_json([entry.id, entry.owner, entry.requester, entry.renewers, *times])
        case Acl():
            return to_json(_acl(entry))
        case Quota():
            return to_json([_parts(entry.entity), dict(entry.limits)])
        case ResourceConfigs():
            return to_json([entry.resource.scope, entry.resource.name, dict(entry.configs)])
        case _:
            assert_never(entry)


def read_entry(path: str, data: bytes) -> Entry:
    folder = path.split("/", 2)[1]
    fields = from_json(data)
    match f"/{folder}":
        case "/topics":
            return Topic(
                fields["name"], TopicId.parse(fields["id"]), fields["partitions"], fields["configs"], fields["internal"]
            )
        case "/credentials":
            return _read_credential(fields)
        case "/tokens":
            token_id, owner, requester, renewers, *times = fields
            return DelegationToken(token_id, owner, requester, tuple(renewers), *times)
        case "/acls":
            return _read_acl(fields)
        case "/quotas":
            parts, limits = fields
            named = {QuotaEntityType(kind): each for kind, each in parts}
            return Quota(QuotaEntity.of(named), {key: float(limit) for key, limit in limits.items()})
        case "/configs":
            scope, resource, configs = fields
            return ResourceConfigs(ConfigResource(ConfigScope(scope), resource), configs)
        case _:
            raise ValueError(f"{path} is not a catalog entry")


def _topic_data(topic: Topic, layout: Layout) -> bytes:
    return to_json(
        {
            "name": topic.name,
            "id": topic.id.text,
            "partitions": topic.partitions,
            "internal": topic.is_internal,
            "configs": dict(topic.configs),
            "factor": layout.factor,
            "assignments": [[index, list(nodes)] for index, nodes in layout.assignments.items()],
        }
    )


def read_layout(data: bytes) -> Layout:
    fields = from_json(data)
    return Layout(fields["factor"], {index: tuple(nodes) for index, nodes in fields["assignments"]})


def read_wanted(data: bytes) -> WantedTopic:
    fields, layout = from_json(data), read_layout(data)
    unclean = fields["configs"].get(UNCLEAN_ELECTION)
    return WantedTopic(
        TopicId.parse(fields["id"]),
        fields["name"],
        fields["partitions"],
        layout.factor,
        layout.assignments,
        None if unclean is None else unclean == "true",
        _whole_number(fields["configs"].get(MIN_ISR), 1),
    )


def _whole_number(text: str | None, otherwise: int) -> int:
    return int(text) if text is not None and text.isdigit() else otherwise


def node_of_configs(path: str) -> int | None:
    """The broker whose configs are stored at this path, if any."""
    match = _OF_A_NODE.fullmatch(path)
    return None if match is None else int(match[1])


def is_draining(data: bytes) -> bool:
    """Whether the node's configs mark it as drained."""
    return bool(from_json(data)[2].get(DRAINING) == "true")


def _read_credential(fields: list[Any]) -> ScramCredential:
    user, mechanism, salt, iterations, stored_key, server_key, *expiry = fields
    return ScramCredential(
        user,
        ScramMechanism(mechanism),
        base64.b64decode(salt),
        iterations,
        base64.b64decode(stored_key),
        base64.b64decode(server_key),
        *expiry,
    )


def _acl(acl: Acl) -> list[object]:
    return [
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission,
    ]


def _read_acl(fields: list[Any]) -> Acl:
    resource_type, resource_name, pattern_type, principal, host, operation, permission = fields
    return Acl(
        ResourceType(resource_type),
        resource_name,
        PatternType(pattern_type),
        principal,
        host,
        AclOperation(operation),
        AclPermission(permission),
    )


def _parts(entity: QuotaEntity) -> list[tuple[str, str | None]]:
    return sorted(entity.parts, key=lambda part: part[0])


def _safe(name: str) -> str:
    return quote(name, safe="")


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
