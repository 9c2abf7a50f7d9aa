"""The content of audit lines of admin requests: names, never values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from ottla.broker.metrics import error_codes
from ottla.broker.requests.answers import then
from ottla.broker.topics import AUDIT
from ottla.core.errors import ApiError, ErrorCode
from ottla.storage.catalog.entries import AclOperation, AclPermission, ResourceType
from ottla.wire.messages.create_acls import AclCreation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.broker import Broker
    from ottla.broker.requests.answers import Handler, NowOrLater
    from ottla.broker.requests.context import Context
    from ottla.broker.security.audit import Audit
    from ottla.wire.declare import Request, Response
    from ottla.wire.messages.fetch import FetchRequest
    from ottla.wire.messages.share_fetch import ShareFetchRequest

_NAMES: Final = ("name", "resource_name", "topic_name", "topic", "resource_name_filter")


def audited(audit: Audit, handler: Handler) -> Handler:
    def noted(broker: Broker, request: Request, context: Context) -> NowOrLater:
        names = list(dict.fromkeys(_tokens_in(broker, request) or names_in(request)))

        def note(response: Response) -> Response:
            errors = sorted({ErrorCode(code).name for code in error_codes(response)})
            created = getattr(response, "token_id", "")
            audit.changed(context, [created] if created else names, errors)
            return response

        answer = handler(broker, request, context)
        return answer if getattr(request, "validate_only", False) else then(answer, note)

    return noted


def read_audited(audit: Audit, handler: Handler) -> Handler:
    """Wraps the handler inside the authorization: it sees only topics that the client may read."""

    def noted(broker: Broker, request: FetchRequest | ShareFetchRequest, context: Context) -> NowOrLater:
        audit.read(context, _topics_read(broker, request))
        return handler(broker, request, context)

    return noted


def _topics_read(broker: Broker, request: FetchRequest | ShareFetchRequest) -> Iterator[str]:
    if max(getattr(request, "replica_id", -1), getattr(getattr(request, "replica_state", None), "replica_id", -1)) >= 0:
        return  # a follower
    for topic in request.topics or ():
        name = getattr(topic, "topic", "")
        if not name and (state := broker.topics.by_id.get(topic.topic_id)) is not None:
            name = state.name
        # Otherwise a reader of the audit topic would cause a new line with each line it reads.
        if name and name != AUDIT:
            yield name


def _tokens_in(broker: Broker, request: Request) -> list[str]:
    """The id of the delegation token in the request, looked up before it may be deleted."""
    secret, tokens = getattr(request, "hmac", None), broker.security.tokens
    if secret is None or tokens is None:
        return []
    try:
        return [tokens.id_of(secret)]
    except ApiError:
        return []


def names_in(request: Request) -> Iterator[str]:
    group: str | None = getattr(request, "group_id", None)
    if group is not None:
        yield group
    for value in structs.asdict(request).values():
        if isinstance(value, tuple):
            yield from map(_name, value)


def _name(item: object) -> str:
    if isinstance(item, AclCreation):
        permission, operation = AclPermission(item.permission_type), AclOperation(item.operation)
        resource = ResourceType(item.resource_type)
        return f"{permission.name} {item.principal} {operation.name} {resource.name}:{item.resource_name}"
    if hasattr(item, "entity"):
        return ",".join(f"{one.entity_type}={one.entity_name}" for one in item.entity)
    found = next((getattr(item, name) for name in _NAMES if getattr(item, name, None) is not None), None)
    return str(item if isinstance(item, str) else found or "*")
