"""Appends and deletions that wait for replication."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.core.errors import ApiError


class Parked(NamedTuple):
    last_offset: int
    until_s: float
    future: asyncio.Future[None]


class ParkedAppends:
    """Waiting appends of one partition, almost always in offset order; only duplicates are out of order."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[Parked] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def park(self, last_offset: int, timeout_s: float) -> asyncio.Future[None]:
        """Done once `release` passes this offset; an ApiError on failure."""
        loop = asyncio.get_running_loop()
        parked = Parked(last_offset, loop.time() + timeout_s, loop.create_future())
        self._waiting.append(parked)
        return parked.future

    def release(self, high_watermark: int, refusal: ApiError | None) -> None:
        """Complete appends below this offset, which are committed; with an error, if too few replicas have them."""
        waiting = self._waiting
        while waiting and waiting[0].last_offset < high_watermark:
            _end(waiting.popleft(), refusal)

    def fail_all(self, why: ApiError) -> None:
        while self._waiting:
            _end(self._waiting.popleft(), why)

    def expire(self, now_s: float, refuse: Callable[[], ApiError]) -> None:
        if any(parked.until_s <= now_s for parked in self._waiting):
            for parked in [each for each in self._waiting if each.until_s <= now_s]:
                self._waiting.remove(parked)
                _end(parked, refuse())


def _end(parked: Parked, refusal: ApiError | None) -> None:
    if parked.future.done():  # the client has disconnected
        return
    if refusal is None:
        parked.future.set_result(None)
    else:
        parked.future.set_exception(type(refusal)(str(refusal)))
