"""Applies authorization rules to requests.

Denied entries of a list are removed from the request before the handler sees it, and get an error in the response
beside the handler's results for the others.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import structs

from ottla.broker.authorization.refusals import CODES, part_of, refusal, refusing
from ottla.broker.authorization.rules import CLUSTER
from ottla.broker.requests.answers import after, then
from ottla.broker.requests.turns import Turns
from ottla.core.errors import ErrorCode
from ottla.wire.apis import response_type
from ottla.wire.declare import Response

if TYPE_CHECKING:
    from ottla.broker.authorization.authorizer import Authorizer
    from ottla.broker.authorization.rules import Each, Need, Resource, Rule
    from ottla.broker.broker import Broker
    from ottla.broker.requests.answers import Handler, NowOrLater
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.turns import InTurns
    from ottla.storage.catalog.entries import AclOperation, ResourceType
    from ottla.wire.declare import Message, Request

LOOKS_AT_CLOCK: Final = 32
"""Check the clock after this many entries of a list."""


def guarded(rule: Rule, authorizer: Authorizer, handler: Handler) -> Handler:
    """Wrap the handler so that it is called only for what the rule allows."""
    custom = None if rule.custom is None else partial(rule.custom(), authorizer, handler)
    if not rule.needs and rule.each is None:
        return custom or handler

    def checked(broker: Broker, request: Request, context: Context) -> NowOrLater:
        missing = _missing(rule, authorizer, request, context)
        if missing is not None:
            return refused(response_type(request.API), request, CODES[missing.kind], context)
        if custom is not None:
            answer = custom(broker, request, context)
        elif rule.each is not None:
            answer = filtered(rule.each, authorizer, handler, broker, request, context)
        else:
            answer = handler(broker, request, context)
        if not rule.waits or answer is None or isinstance(answer, Response):
            return answer
        return then(answer, lambda response: _if_still_allowed(rule, authorizer, request, response, context))

    return checked


def _missing(rule: Rule, authorizer: Authorizer, request: Request, context: Context) -> Need | None:
    """The first required operation that is denied."""
    for need in rule.needs:
        resource = need.resource(request)
        if resource is not None and not authorizer.check(context, need.operation, *resource):
            return need
    return None


def _if_still_allowed(
    rule: Rule, authorizer: Authorizer, request: Request, response: Response, context: Context
) -> Response:
    missing = _missing(rule, authorizer, request, context)
    if missing is None:
        return response
    return refusal(response_type(request.API), request, CODES[missing.kind], context.version)


def filtered(  # noqa: PLR0913
    each: Each,
    authorizer: Authorizer,
    handler: Handler,
    broker: Broker,
    request: Request,
    context: Context,
) -> NowOrLater:
    """The response for allowed entries, with errors for the others."""
    if getattr(request, each.asked) is None:
        return handler(broker, request, context)

    def go_on(denied: dict[int, Message]) -> NowOrLater:
        if not denied:
            return handler(broker, request, context)
        left = tuple(item for at, item in enumerate(getattr(request, each.asked)) if at not in denied)
        more = tuple(denied.values())
        if not left and each.always_asked is None:
            # Not called at all: to some handlers an empty list means everything.
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
    request: Request,
    context: Context,
) -> InTurns[dict[int, Message]]:
    """Denied entries: their positions in the list, and their errors."""
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
    """Collects the denials of a request for a single audit line per operation."""

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
        """Whether this is allowed, if it is an alternative to another permission."""
        return self._authorizer.is_allowed(self._context, operation, *resource)

    def note(self) -> None:
        for (operation, kind), names in self._names.items():
            self._authorizer.note_denied(self._context, operation, kind, list(names))


def refused(kind: type[Response], request: Request, code: ErrorCode, context: Context) -> NowOrLater:
    """The error response to a whole request."""
    return after(refusing(kind, request, code, context.version, Turns()), lambda response: response)


def with_more(response: Response, field: str, more: tuple[Message, ...]) -> Response:
    return structs.replace(response, **{field: (*getattr(response, field), *more)})
