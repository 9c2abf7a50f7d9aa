"""Asking the broker what a Kafka client would ask, from inside the process: how other doors reach the one log.

The same handlers answer, so whatever they check, refuse or wait for holds for every door.
"""

from __future__ import annotations

from types import GeneratorType
from typing import TYPE_CHECKING, Any, cast

from ottla.broker.context import Context
from ottla.broker.dispatch import in_turns
from ottla.core.errors import ApiError, ErrorCode
from ottla.wire.declare import Response
from ottla.wire.header import RequestHeader

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ottla.broker.broker import Broker
    from ottla.wire.declare import Request


class Refused(ApiError):
    """What an error code in an answer comes to."""

    def __init__(self, code: int, message: str | None = None) -> None:
        self.code = ErrorCode(code)  # type: ignore[misc]  # of this refusal, not of all
        super().__init__(message or "")


def raise_refusal(code: int, message: str | None = None) -> None:
    if code:
        raise Refused(code, message)


class LocalClient:
    """Somebody who reaches the broker through another door."""

    def __init__(self, broker: Broker, name: str, peer: tuple[str, int]) -> None:
        self.peer = peer
        self.local: tuple[str, int] = broker.address
        self.state: dict[str, object] = {}
        self._broker = broker
        self._name = name

    async def ask(self, request: Request, version: int | None = None) -> Any:  # noqa: ANN401 - as the request says
        """The answer to this request, in the newest version there is unless told otherwise."""
        api = request.API
        header = RequestHeader(api, api.last if version is None else version, 0, self._name, 0)
        answer = self._broker.dispatcher.handler(api)(self._broker, request, Context(header, self))
        if isinstance(answer, GeneratorType):
            answer = in_turns(answer)
        if answer is None or isinstance(answer, Response):
            return answer
        return await cast("Awaitable[Response | None]", answer)
