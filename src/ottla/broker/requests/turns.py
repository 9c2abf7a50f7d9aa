"""Long requests are processed in time slices, so that other requests are not blocked.

A handler that may process tens of thousands of entries is a generator: it yields at the end of its slice, and returns
its response. Most requests need only one slice, and no task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from time import monotonic
from typing import Final, TypeAlias, TypeVar, cast

ResponseT = TypeVar("ResponseT")
InTurns: TypeAlias = Generator[None, None, ResponseT]

FEW: Final = 100
"""Up to this many entries are processed without slices, even if each is expensive."""
_TURN_S: Final = 0.005


class Turns:
    __slots__ = ("_until_s",)

    def __init__(self) -> None:
        self._until_s = monotonic() + _TURN_S

    def are_over(self) -> bool:
        """Whether to yield to other requests; starts a new slice."""
        now_s = monotonic()
        if now_s < self._until_s:
            return False
        self._until_s = now_s + _TURN_S
        return True


def in_turns(turns: InTurns[ResponseT]) -> ResponseT | Coroutine[object, object, ResponseT]:
    """Run the handler in time slices; returns the response itself if one slice was sufficient."""
    try:
        next(turns)
    except StopIteration as done:
        return cast("ResponseT", done.value)
    return _go_on(turns)


async def _go_on(turns: InTurns[ResponseT]) -> ResponseT:
    while True:
        await asyncio.sleep(0)
        try:
            next(turns)
        except StopIteration as done:
            # Encoding a long response takes a separate slice.
            await asyncio.sleep(0)
            return cast("ResponseT", done.value)
