"""In-process requests: how other protocols use the broker, with Kafka's request types.

They use the same handlers, so the same checks, errors and waits apply to every protocol.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from ottla.broker.requests.answers import settled
from ottla.broker.requests.context import Context
from ottla.core.errors import ApiError, ErrorCode
from ottla.core.security import ANONYMOUS
from ottla.wire.apis import METADATA
from ottla.wire.header import RequestHeader

if TYPE_CHECKING:
    from ottla.broker.batches.inflating import Inflating
    from ottla.broker.broker import Broker
    from ottla.core.ids import Address
    from ottla.core.security import AclOperation, ResourceType
    from ottla.wire.codec import RequestFor
    from ottla.wire.declare import Response


ResponseT = TypeVar("ResponseT", bound="Response")


class Refused(ApiError):
    """The exception for an error code in a response."""

    def __init__(self, code: int, message: str | None = None) -> None:
        self.code = ErrorCode(code)  # type: ignore[misc]  # of this refusal, not of all
        super().__init__(message or "")


class NodeAway(ApiError):
    """A node of the cluster does not respond; the message has its id."""

    code = ErrorCode.BROKER_NOT_AVAILABLE


def raise_refusal(code: int, message: str | None = None) -> None:
    if code:
        raise Refused(code, message)


class LocalClient:
    """A client of another protocol."""

    sends_files = False

    def __init__(
        self,
        broker: Broker,
        name: str,
        peer: tuple[str, int],
        principal: str = ANONYMOUS,
        groups: tuple[str, ...] = (),
    ) -> None:
        self.forwards = True
        """In a cluster: forward requests for partitions of other nodes."""
        self.peer = peer
        self.principal = principal
        self.groups = groups
        self.login: object = None
        self.advertised: Address | None = broker.advertised
        self.listener: str = broker.listener.ports[0].name
        self.local: tuple[str, int] = broker.address
        self.state: dict[str, object] = {}
        self._broker = broker
        self._name = name
        self._pause_s = 0.0

    @property
    def inflating(self) -> Inflating:
        return self._broker.inflating

    def mute_for(self, seconds: float) -> None:
        self._pause_s = seconds

    def context(self, request: RequestFor[Response], version: int | None = None) -> Context:
        api = request.API
        return Context(RequestHeader(api, api.last if version is None else version, 0, self._name, 0), self)

    def may(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Whether an operation is allowed, for reads that have no handler."""
        authorizer = self._broker.security.authorizer
        return authorizer is None or authorizer.is_allowed(self._looking, operation, kind, name)

    def check(self, operation: AclOperation, kind: ResourceType, name: str) -> None:
        """Raises Refused, with an audit line, unless the operation is allowed."""
        authorizer = self._broker.security.authorizer
        if authorizer is not None and not authorizer.check(self._looking, operation, kind, name):
            from ottla.broker.authorization.refusals import CODES

            raise Refused(CODES[kind], f"{self.principal} may not {operation.name} {kind.name.lower()} {name}")

    @property
    def _looking(self) -> Context:
        return Context(RequestHeader(METADATA, METADATA.last, 0, self._name, 0), self)

    async def ask(self, request: RequestFor[ResponseT], version: int | None = None) -> ResponseT:
        """Send this request, in the latest version by default, and return the response."""
        context = self.context(request, version)
        answer: ResponseT = await settled(self._broker.dispatcher.handler(request.API)(self._broker, request, context))
        if self._pause_s:
            pause_s, self._pause_s = self._pause_s, 0.0
            await asyncio.sleep(pause_s)
        return answer
