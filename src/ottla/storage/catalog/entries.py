"""The entries of a catalog: frozen values with Kafka's names and codes.

A change replaces one of these by another; none is modified in place.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import force_setattr

from ottla.core.security import AclOperation, AclPermission, PatternType, ResourceType, ScramMechanism
from ottla.core.structs import repr_without

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.core.ids import TopicId


__all__ = [
    "NO_USER",
    "Acl",
    "AclOperation",
    "AclPermission",
    "ConfigResource",
    "ConfigScope",
    "DelegationToken",
    "Entry",
    "PatternType",
    "ProducerIdBlock",
    "Quota",
    "QuotaEntity",
    "QuotaEntityType",
    "ResourceConfigs",
    "ResourceType",
    "ScramCredential",
    "ScramMechanism",
    "Topic",
]


class Topic(Struct, frozen=True):
    """A topic. Names that differ only in case are two topics, even on a case-insensitive file system."""

    name: str
    id: TopicId
    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)
    is_internal: bool = False

    def __post_init__(self) -> None:
        force_setattr(self, "configs", MappingProxyType(dict(self.configs)))

    def __hash__(self) -> int:
        return hash((self.name, self.id, self.partitions))


NO_USER: Final = ""
"""The user of the credential whose key all nodes derive SCRAM decoys from. It cannot log in."""


class ScramCredential(Struct, frozen=True):
    """A SCRAM verifier (RFC 5802), which does not reveal the password."""

    user: str
    mechanism: ScramMechanism
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes
    expires_ms: int | None = None
    """When it expires, in milliseconds since 1970; None for never."""

    def __repr__(self) -> str:
        return repr_without(self, "salt", "stored_key", "server_key")


class DelegationToken(Struct, frozen=True):
    """A delegation token. Principals have the form User:ann, times are milliseconds. Its secret is derived from the id
    and not stored.
    """

    id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    """The time beyond which it cannot be renewed."""


class Acl(Struct, frozen=True):
    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission


class ProducerIdBlock(Struct, frozen=True):
    """`count` producer ids from `first` on, allocated exclusively."""

    first: int
    count: int

    @property
    def ids(self) -> range:
        return range(self.first, self.first + self.count)


class QuotaEntityType(StrEnum):
    USER = "user"
    CLIENT_ID = "client-id"
    IP = "ip"


class QuotaEntity(Struct, frozen=True):
    """The entity of a quota; the name None is Kafka's <default>, for all entities without their own quota."""

    parts: frozenset[tuple[QuotaEntityType, str | None]]

    @classmethod
    def of(cls, parts: Mapping[QuotaEntityType, str | None]) -> QuotaEntity:
        return cls(frozenset(parts.items()))


class Quota(Struct, frozen=True):
    entity: QuotaEntity
    limits: Mapping[str, float]
    """The limits by Kafka's key: producer_byte_rate, consumer_byte_rate, request_percentage, …"""

    def __post_init__(self) -> None:
        force_setattr(self, "limits", MappingProxyType(dict(self.limits)))

    def __hash__(self) -> int:
        return hash(self.entity)


class ConfigScope(IntEnum):
    """Kafka's persistent config resource types; a topic's configs are part of the topic."""

    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(Struct, frozen=True):
    scope: ConfigScope
    name: str
    """A broker's id in decimal, or empty for the default of all brokers."""


class ResourceConfigs(Struct, frozen=True):
    resource: ConfigResource
    configs: Mapping[str, str]

    def __post_init__(self) -> None:
        force_setattr(self, "configs", MappingProxyType(dict(self.configs)))

    def __hash__(self) -> int:
        return hash(self.resource)


Entry = Topic | ScramCredential | DelegationToken | Acl | Quota | ResourceConfigs
