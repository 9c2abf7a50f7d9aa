"""What a rule is: what must be allowed for a request, and for each of the things that it asks about.

A rule goes around a handler. What is not allowed is taken out of the request before the handler sees it, and
refused in the answer beside what the handler says of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from msgspec import structs

from ottla.broker.answers import after, then
from ottla.broker.authorization.refusals import CODES, part_of, refusal, refusing
from ottla.broker.turns import Turns
from ottla.core.errors import ErrorCode
from ottla.core.security import CLUSTER_NAME
from ottla.storage.catalog.entries import AclOperation, ResourceType
from ottla.wire.apis import response_type
from ottla.wire.declare import Response

if TYPE_CHECKING:
    from ottla.broker.answers import Handler, NowOrLater
    from ottla.broker.authorization.authorizer import Authorizer
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.turns import InTurns
    from ottla.wire.declare import Message, Request

LOOKS_AT_CLOCK: Final = 32
"""After so many entries of a list."""
Guarded: TypeAlias = Callable[["Authorizer", "Handler", "Broker", Any, "Context"], "NowOrLater"]
"""What stands around a handler."""


class Resource(NamedTuple):
    kind: ResourceType
    name: str


CLUSTER = Resource(ResourceType.CLUSTER, CLUSTER_NAME)


@dataclass(frozen=True, slots=True)
class Need:
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


@dataclass(frozen=True, slots=True)
class Each:
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


@dataclass(frozen=True, slots=True)
class Rule:
    needs: tuple[Need, ...] = ()
    each: Each | None = None
    custom: Guarded | None = None
    """In place of `each`, where it takes more than that."""
    also: tuple[tuple[AclOperation, ResourceType], ...] = ()
    """What `custom` asks about, for those who read the table."""
    waits: bool = False
    """The answer may come long after the question: `needs` must still be allowed then."""

    @property
    def operations(self) -> frozenset[tuple[AclOperation, ResourceType]]:
        """All that may be asked about."""
        each = () if self.each is None else ((self.each.operation, self.each.kind),)
        return frozenset((*((need.operation, need.kind) for need in self.needs), *each, *self.also))

    def around(self, authorizer: Authorizer, handler: Handler) -> Handler:
        if not self.needs and self.each is None:
            return handler if self.custom is None else partial(self.custom, authorizer, handler)

        def guarded(broker: Broker, request: Request, context: Context) -> NowOrLater:
            for need in self.needs:
                resource = need.resource(request)
                if resource is not None and not authorizer.check(context, need.operation, *resource):
                    return refused(response_type(request.API), request, CODES[need.kind], context)
            if self.custom is not None:
                answer = self.custom(authorizer, handler, broker, request, context)
            elif self.each is not None:
                answer = filtered(self.each, authorizer, handler, broker, request, context)
            else:
                answer = handler(broker, request, context)
            if not self.waits or answer is None or isinstance(answer, Response):
                return answer
            return then(answer, lambda response: self._if_still_allowed(authorizer, request, response, context))

        return guarded

    def _if_still_allowed(
        self, authorizer: Authorizer, request: Request, response: Response, context: Context
    ) -> Response:
        for need in self.needs:
            resource = need.resource(request)
            if resource is not None and not authorizer.check(context, need.operation, *resource):
                return refusal(response_type(request.API), request, CODES[need.kind], context.version)
        return response


def filtered(  # noqa: PLR0913
    each: Each,
    authorizer: Authorizer,
    handler: Handler,
    broker: Broker,
    request: Any,  # noqa: ANN401 - of whatever API
    context: Context,
) -> NowOrLater:
    """The answer to what is allowed, with refusals of the rest."""
    if getattr(request, each.asked) is None:
        return handler(broker, request, context)

    def go_on(denied: dict[int, Message]) -> NowOrLater:
        if not denied:
            return handler(broker, request, context)
        left = tuple(item for at, item in enumerate(getattr(request, each.asked)) if at not in denied)
        more = tuple(denied.values())
        if not left and each.always_asked is None:
            # Not asked at all: to some handlers an empty list means everything.
            blank = refusal(response_type(request.API), None, ErrorCode.NONE, context.version)
            return structs.replace(blank, **{each.answered: more})
        changes = {each.asked: left} if left else {**(each.always_asked or {}), each.asked: left}
        answer = handler(broker, structs.replace(request, **changes), context)
        return then(answer, lambda response: _with_refused(each, response, more))

    return after(_refused(each, authorizer, broker, request, context), go_on)


def _refused(
    each: Each,
    authorizer: Authorizer,
    broker: Broker,
    request: Any,  # noqa: ANN401 - of whatever API
    context: Context,
) -> InTurns[dict[int, Message]]:
    """What is not allowed: where in the list it is, and how it is refused."""
    denied: dict[int, Message] = {}
    if each.or_on_cluster and authorizer.is_allowed(context, each.operation, *CLUSTER):
        return denied
    kind = part_of(response_type(request.API), each.answered, context.version)
    denials = Denials(authorizer, context)
    turns = Turns()
    for at, item in enumerate(getattr(request, each.asked)):
        resource = each.of(broker, item)
        if resource is not None and not denials.check(each.operation, resource):
            denied[at] = yield from refusing(kind, item, CODES[resource.kind], context.version, turns)
        if at and at % LOOKS_AT_CLOCK == 0 and turns.are_over():
            yield
    denials.note()
    return denied


def _with_refused(each: Each, response: Response, refused: tuple[Message, ...]) -> Response:
    code: int = getattr(response, "error_code", ErrorCode.NONE)
    if each.always_asked is not None and code:
        return response
    return with_more(response, each.answered, refused)


class Denials:
    """What one request is denied, for a single line of the audit log for each operation."""

    def __init__(self, authorizer: Authorizer, context: Context) -> None:
        self._authorizer = authorizer
        self._context = context
        self._names: dict[tuple[AclOperation, ResourceType], dict[str, None]] = {}

    def check(self, operation: AclOperation, resource: Resource) -> bool:
        """Whether this is allowed."""
        if self._authorizer.is_allowed(self._context, operation, *resource):
            return True
        self._names.setdefault((operation, resource.kind), {})[resource.name] = None
        return False

    def may(self, operation: AclOperation, resource: Resource) -> bool:
        """Whether this is allowed, where it is enough if something else is."""
        return self._authorizer.is_allowed(self._context, operation, *resource)

    def note(self) -> None:
        for (operation, kind), names in self._names.items():
            self._authorizer.note_denied(self._context, operation, kind, list(names))


def refused(kind: type[Response], request: Request, code: ErrorCode, context: Context) -> NowOrLater:
    """The refusal of a whole request."""
    return after(refusing(kind, request, code, context.version, Turns()), lambda response: response)


def with_more(response: Response, field: str, more: tuple[Message, ...]) -> Response:
    return structs.replace(response, **{field: (*getattr(response, field), *more)})
