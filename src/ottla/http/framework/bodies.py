"""Buffered request bodies: a minimum rate, and a memory limit for all of them together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Self

_LEAST_BYTES_PER_S: Final = 256
"""The minimum rate, averaged over `max_stalled_s`. One byte now and then must not hold memory forever."""


class BodyRefused(Exception):
    def __init__(self, status: int, detail: str, hint: str) -> None:
        super().__init__(detail)
        self.status = status
        self.hint = hint


class Bodies:
    """All bodies being received. If they are too large together, the oldest is rejected."""

    def __init__(self, max_stalled_s: float, max_held_bytes: int) -> None:
        self.max_stalled_s = max_stalled_s
        self.max_held_bytes = max_held_bytes
        self.held_bytes = 0
        self._held: dict[Body, int] = {}  # in start order

    def hold(self, body: Body, size: int) -> None:
        """Record that the body now holds this many bytes."""
        self.held_bytes += size - self._held.get(body, 0)
        if size:
            self._held[body] = size
        else:
            self._held.pop(body, None)
        while self.held_bytes > self.max_held_bytes:
            oldest = next(iter(self._held))
            self.held_bytes -= self._held.pop(oldest)
            oldest.give_up()


class Body:
    """One body, as it arrives: `with Body(…) as body: await body.read()`."""

    def __init__(self, bodies: Bodies, stream: AsyncIterator[bytes], *, is_collected: bool) -> None:
        """A body that is not `is_collected` is processed as it arrives, without a minimum rate."""
        self._bodies = bodies
        self._stream = stream
        rate = _LEAST_BYTES_PER_S if is_collected else 0
        self._least_bytes = max(1, round(rate * bodies.max_stalled_s))
        self._arrived = 0
        self._deadline_s = asyncio.get_running_loop().time() + bodies.max_stalled_s
        self._waiting: asyncio.Timeout | None = None
        self._is_given_up = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bodies.hold(self, 0)

    async def read(self) -> bytes | None:
        """The next chunk, None at the end; raises BodyRefused if it is too slow or the limit is exceeded."""
        if self._arrived >= self._least_bytes:
            self._arrived = 0
            self._deadline_s = asyncio.get_running_loop().time() + self._bodies.max_stalled_s
        try:
            async with asyncio.timeout_at(self._deadline_s) as self._waiting:
                chunk = await anext(self._stream, None)
        except TimeoutError:
            self._refuse_if_given_up()
            raise BodyRefused(408, "the request body stalled or is too slow", "Send it without pauses.") from None
        finally:
            self._waiting = None
        self._arrived += len(chunk or b"")
        return chunk

    async def read_all(self, limit: int) -> bytes:
        """Read the whole body. Raises BodyRefused with 413 if it is larger than `limit`."""
        content = bytearray()
        while (chunk := await self.read()) is not None:
            content += chunk
            if len(content) > limit:
                raise BodyRefused(413, f"the body is larger than {limit} bytes", "Send less at a time.")
            self.hold(len(content))
        return bytes(content)

    def hold(self, size: int) -> None:
        """Record how many of its bytes are in memory now."""
        self._refuse_if_given_up()
        self._bodies.hold(self, size)
        self._refuse_if_given_up()

    def give_up(self) -> None:
        self._is_given_up = True
        if self._waiting is not None:
            self._waiting.reschedule(asyncio.get_running_loop().time())

    def _refuse_if_given_up(self) -> None:
        if self._is_given_up:
            detail = f"too many concurrent request bodies (the limit is {self._bodies.max_held_bytes} bytes)"
            raise BodyRefused(503, detail, "Try again later, with smaller bodies.")
