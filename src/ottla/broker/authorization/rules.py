"""The permissions that an API requires, for a request and for each entry that it lists.

Declarations for the API table; `guarding` applies them, and is imported if ACLs are enabled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias, cast

from msgspec import Struct

from ottla.core.security import CLUSTER_NAME
from ottla.storage.catalog.entries import AclOperation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.broker.authorization.authorizer import Authorizer
    from ottla.broker.broker import Broker
    from ottla.broker.requests.answers import Handler, NowOrLater
    from ottla.broker.requests.context import Context
    from ottla.wire.declare import Request

Guarded: TypeAlias = "Callable[[Authorizer, Handler, Broker, Any, Context], NowOrLater]"
"""A function that wraps a handler."""


class Resource(NamedTuple):
    kind: ResourceType
    name: str


CLUSTER = Resource(ResourceType.CLUSTER, CLUSTER_NAME)


# The resource of an entry


class _Configured(Protocol):
    """An entry of a request about configs."""

    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...


class _OfShareGroup(Protocol):
    """A topic in a request about a share group."""

    @property
    def topic_name(self) -> str: ...


_CONFIGURED: Final = {2: ResourceType.TOPIC, 32: ResourceType.GROUP}
"""Resource types of configs; all others belong to the cluster."""


def configured_resource(_: Broker, item: _Configured) -> Resource:
    kind = _CONFIGURED.get(item.resource_type)
    return CLUSTER if kind is None else Resource(kind, item.resource_name)


def listed_name(_: Broker, name: str) -> str:
    return name


def share_topic(_: Broker, item: _OfShareGroup) -> str:
    return str(item.topic_name)


# Required permissions


class Need(Struct, frozen=True):
    """An operation that must be allowed on one resource; `name` is the request field with its name."""

    operation: AclOperation
    kind: ResourceType
    name: str = ""

    def resource(self, request: Request) -> Resource | None:
        """The resource to check; None if the request names no resource."""
        if self.kind is ResourceType.CLUSTER:
            return CLUSTER
        name: str | None = getattr(request, self.name)
        return None if name is None else Resource(self.kind, name)


class Each(Struct, frozen=True):
    """An operation that must be allowed on each entry of a list."""

    operation: AclOperation
    kind: ResourceType
    asked: str
    """The request field with the list."""
    answered: str
    """The response field with the results."""
    name: Callable[[Broker, Any], str | None] = lambda _, item: cast("str | None", item.name)
    """The name of an entry; None if it is unknown, which the handler reports."""
    resource: Callable[[Broker, Any], Resource | None] | None = None
    """The resource type of an entry, if it differs between entries."""
    always_asked: Mapping[str, object] | None = None
    """Request fields that are cleared for the handler, which is then called even without entries:
    it may have an error for the whole request."""
    or_on_cluster: bool = False
    """Whether the operation allowed on the cluster is sufficient."""

    def of(self, broker: Broker, item: object) -> Resource | None:
        if self.resource is not None:
            return self.resource(broker, item)
        name = self.name(broker, item)
        return None if name is None else Resource(self.kind, name)


class Rule(Struct, frozen=True):
    needs: tuple[Need, ...] = ()
    each: Each | None = None
    custom: Callable[[], Guarded] | None = None
    """Imports the function that wraps the handler, if `each` is not sufficient."""
    also: tuple[tuple[AclOperation, ResourceType], ...] = ()
    """The permissions that `custom` checks."""
    waits: bool = False
    """The response may be delayed: `needs` must still be allowed when it is sent."""

    @property
    def operations(self) -> frozenset[tuple[AclOperation, ResourceType]]:
        """All operations that the rule may check."""
        each = () if self.each is None else ((self.each.operation, self.each.kind),)
        return frozenset((*((need.operation, need.kind) for need in self.needs), *each, *self.also))
