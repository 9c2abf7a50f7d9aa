"""Long requests are answered in turns, so that nobody else waits for the whole of one.

A handler that goes through what may be tens of thousands of entries is a generator: it yields when its turn is over,
and returns its response. Most requests are answered in their first turn, without a task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from time import monotonic
from typing import Final, TypeAlias, TypeVar, cast

ResponseT = TypeVar("ResponseT")
InTurns: TypeAlias = Generator[None, None, ResponseT]

FEW: Final = 100
"""So many entries need not be counted in turns, even where that would cost too much for the usual one."""
_TURN_S: Final = 0.005


class Turns:
    __slots__ = ("_until_s",)

    def __init__(self) -> None:
        self._until_s = monotonic() + _TURN_S

    def are_over(self) -> bool:
        """Whether it is time to let others have theirs; after that a new one begins."""
        now_s = monotonic()
        if now_s < self._until_s:
            return False
        self._until_s = now_s + _TURN_S
        return True


def in_turns(turns: InTurns[ResponseT]) -> ResponseT | Coroutine[object, object, ResponseT]:
    """The answer, if the first turn was enough for it."""
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
            # To encode a long answer takes a turn of its own.
            await asyncio.sleep(0)
            return cast("ResponseT", done.value)
