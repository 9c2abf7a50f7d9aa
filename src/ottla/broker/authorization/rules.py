"""What an API requires: operations that must be allowed for a request, and for each of the things that it lists.

Declarations alone, which the table of APIs holds; `guarding` applies them, and is loaded where ACLs are on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

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
"""A function that goes around a handler."""


class Resource(NamedTuple):
    kind: ResourceType
    name: str


CLUSTER = Resource(ResourceType.CLUSTER, CLUSTER_NAME)


# Which resource an entry of a request is

_CONFIGURED: Final = {2: ResourceType.TOPIC, 32: ResourceType.GROUP}
"""Resource types of configs; all others belong to the cluster."""


def configured_resource(_: Broker, item: Any) -> Resource:  # noqa: ANN401 - of any request about configs
    kind = _CONFIGURED.get(item.resource_type)
    return CLUSTER if kind is None else Resource(kind, item.resource_name)


def listed_name(_: Broker, name: str) -> str:
    return name


def share_topic(_: Broker, item: Any) -> str:  # noqa: ANN401 - of any request about share groups
    return str(item.topic_name)


# What an API requires


class Need(Struct, frozen=True):
    """An operation that must be allowed on one resource; `name` is the field of the request that names it."""

    operation: AclOperation
    kind: ResourceType
    name: str = ""

    def resource(self, request: Request) -> Resource | None:
        """None if the request names none, so that there is nothing to ask."""
        if self.kind is ResourceType.CLUSTER:
            return CLUSTER
        name: str | None = getattr(request, self.name)
        return None if name is None else Resource(self.kind, name)


class Each(Struct, frozen=True):
    """An operation that must be allowed on each of the things that a request lists."""

    operation: AclOperation
    kind: ResourceType
    asked: str
    """The field of the request that lists them."""
    answered: str
    """The field of the response in which they are answered."""
    name: Callable[[Broker, Any], str | None] = lambda _, item: cast("str | None", item.name)
    """What one of them is named; None if that is not known, which is for the handler to say."""
    resource: Callable[[Broker, Any], Resource | None] | None = None
    """Which resource one of them is, where they are not all of one kind."""
    always_asked: Mapping[str, object] | None = None
    """Fields of the request that change for the handler, which is then asked even if it has nothing left to do:
    it may have an error for the whole request."""
    or_on_cluster: bool = False
    """Whether it is enough if the operation is allowed on the cluster."""

    def of(self, broker: Broker, item: object) -> Resource | None:
        if self.resource is not None:
            return self.resource(broker, item)
        name = self.name(broker, item)
        return None if name is None else Resource(self.kind, name)


class Rule(Struct, frozen=True):
    needs: tuple[Need, ...] = ()
    each: Each | None = None
    custom: Callable[[], Guarded] | None = None
    """Imports the function that goes around the handler, where `each` cannot say it."""
    also: tuple[tuple[AclOperation, ResourceType], ...] = ()
    """What `custom` checks."""
    waits: bool = False
    """The response may come long after the request: `needs` must still be allowed then."""

    @property
    def operations(self) -> frozenset[tuple[AclOperation, ResourceType]]:
        """All that may be asked about."""
        each = () if self.each is None else ((self.each.operation, self.each.kind),)
        return frozenset((*((need.operation, need.kind) for need in self.needs), *each, *self.also))
