"""Handler results: immediate, or to be awaited.

A handler is a function, a coroutine function or, if it may need several slices, a generator function. `normalized`
converts the last kind when a handler is loaded, so that wrappers have to deal with two cases: a result, and an
awaitable.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from ottla.broker.requests.turns import in_turns
from ottla.wire.declare import Response

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.turns import InTurns

T = TypeVar("T")
Answer: TypeAlias = Response | None
"""None if the client expects no response (acks=0)."""
NowOrLater: TypeAlias = Any
"""`ResponseT | None | Coroutine[object, object, ResponseT | None]`, of the response type of the handler's API."""
Handler: TypeAlias = "Callable[[Broker, Any, Context], NowOrLater]"

_IS_GENERATOR_FUNCTION: Final = 0x20  # inspect.CO_GENERATOR, without importing inspect


def normalized(function: Callable[[Broker, Any, Context], Any]) -> Handler:
    """Convert a handler that is a generator function; others are returned unchanged."""
    if not function.__code__.co_flags & _IS_GENERATOR_FUNCTION:
        return function

    @wraps(function)
    def handler(broker: Broker, request: object, context: Context) -> NowOrLater:
        return in_turns(function(broker, request, context))

    return handler


async def settled(answer: T | Awaitable[T]) -> T:
    return await answer if isinstance(answer, Awaitable) else answer


def then(answer: NowOrLater, change: Callable[[Any], NowOrLater]) -> NowOrLater:
    """Apply `change` to the response once it is available; None stays None."""
    if answer is None:
        return None
    if isinstance(answer, Response):
        return change(answer)
    return _changed_later(answer, change)


async def _changed_later(answer: Coroutine[object, object, Any], change: Callable[[Any], NowOrLater]) -> Answer:
    response = await answer
    changed: Answer = None if response is None else await settled(change(response))
    return changed


def after(check: InTurns[T], proceed: Callable[[T], NowOrLater]) -> NowOrLater:
    """Call `proceed` with the outcome of the check; the result is immediate if the check needs only one slice."""
    outcome = in_turns(check)
    return _proceeded_later(outcome, proceed) if isinstance(outcome, Coroutine) else proceed(outcome)


async def _proceeded_later(outcome: Coroutine[object, object, T], proceed: Callable[[T], NowOrLater]) -> Answer:
    answer: Answer = await settled(proceed(await outcome))
    return answer
