"""The entries of a catalog: frozen values with Kafka's names and codes.

A change replaces one of these by another; none is modified in place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ottla.core.security import AclOperation, AclPermission, PatternType, ResourceType, ScramMechanism

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


@dataclass(frozen=True, slots=True)
class Topic:
    """Names that differ only in case are two topics, even on a case-insensitive file system."""

    name: str
    id: TopicId
    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict, hash=False)
    is_internal: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "configs", MappingProxyType(dict(self.configs)))


NO_USER: Final = ""
"""The user of the credential whose key all nodes derive SCRAM decoys from. It cannot log in."""


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A SCRAM verifier (RFC 5802), which does not reveal the password."""

    user: str
    mechanism: ScramMechanism
    salt: bytes = field(repr=False)
    iterations: int
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    expires_ms: int | None = None
    """When it expires, in milliseconds since 1970; None for never."""


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """Principals are such as User:ann, times are milliseconds. Its secret is derived from the id and is not stored."""

    id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    """It cannot be renewed beyond."""


@dataclass(frozen=True, slots=True)
class Acl:
    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
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


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """The entity of a quota; the name None is Kafka's <default>: all without their own quota."""

    parts: frozenset[tuple[QuotaEntityType, str | None]]

    @classmethod
    def of(cls, parts: Mapping[QuotaEntityType, str | None]) -> QuotaEntity:
        return cls(frozenset(parts.items()))


@dataclass(frozen=True, slots=True)
class Quota:
    entity: QuotaEntity
    limits: Mapping[str, float] = field(hash=False)
    """By Kafka's key: producer_byte_rate, consumer_byte_rate, request_percentage, …"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", MappingProxyType(dict(self.limits)))


class ConfigScope(IntEnum):
    """Kafka's config resource types that are persistent; a topic's configs are part of the topic."""

    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True)
class ConfigResource:
    scope: ConfigScope
    name: str
    """For a broker its id in decimal, or the empty name for the default of all brokers."""


@dataclass(frozen=True, slots=True)
class ResourceConfigs:
    resource: ConfigResource
    configs: Mapping[str, str] = field(hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "configs", MappingProxyType(dict(self.configs)))


Entry = Topic | ScramCredential | DelegationToken | Acl | Quota | ResourceConfigs
