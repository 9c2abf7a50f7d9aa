"""A client's connection without its protocol: backpressure in both directions, progress, and closing."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

AHEAD_BYTES: Final = 1 << 20
"""Limit of pipelined bytes; above it, the socket is not read until some of them are answered."""
_LEAST_PROGRESS_BYTES: Final = 1024
"""Less than this does not count as progress of an incomplete request or an unread response."""


class Incomplete(Protocol):
    """A parser of frames."""

    @property
    def pending_bytes(self) -> int:
        """The size of the incomplete frame."""


FrameT = TypeVar("FrameT")
ParserT = TypeVar("ParserT", bound=Incomplete)


class ClientStream(asyncio.BaseProtocol, Generic[FrameT, ParserT]):
    """Requests wait in the backlog until they are answered, in order."""

    __slots__ = (
        "_ahead_bytes",
        "_backlog",
        "_backlog_bytes",
        "_frames",
        "_is_finishing",
        "_is_over",
        "_is_reading_paused",
        "_is_writing_paused",
        "_moved",
        "_moved_before",
        "_quiet_since_s",
        "_transport",
        "_was_stalled",
        "local",
        "peer",
    )

    AHEAD_FRAMES: ClassVar[int]
    """Limit of pipelined requests, as AHEAD_BYTES."""

    _transport: asyncio.Transport

    def __init__(self, frames: ParserT) -> None:
        self._frames = frames
        # A list, not a deque: nearly always empty, and an empty deque takes half a kilobyte.
        self._backlog: list[FrameT] = []
        self._backlog_bytes = 0
        self._ahead_bytes = AHEAD_BYTES
        self._is_reading_paused = False
        self._is_writing_paused = False
        self._is_finishing = False
        self._is_over = False
        self._moved = 0  # counts received bytes; cheaper than reading the clock each time
        self._moved_before = 0
        self._was_stalled = False
        self._quiet_since_s = 0.0
        self.peer = ("", 0)
        self.local = ("", 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # it is a socket's
        self._quiet_since_s = asyncio.get_running_loop().time()
        self.peer = (transport.get_extra_info("peername") or ("?", 0))[:2]
        self.local = (transport.get_extra_info("sockname") or ("?", 0))[:2]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - whatever the reason, it is gone
        self._is_over = True
        self._backlog.clear()
        self._backlog_bytes = 0

    def _answered_first(self, count: int, size: int) -> None:
        """Remove the first requests of the backlog, which have this size."""
        self._backlog_bytes -= size
        del self._backlog[:count]

    def _control_reading(self, *, is_wanted: bool = True) -> None:
        is_far_ahead = len(self._backlog) >= self.AHEAD_FRAMES or self._backlog_bytes >= self._ahead_bytes
        should_pause = is_far_ahead or not is_wanted
        if should_pause != self._is_reading_paused and not self._transport.is_closing():
            self._is_reading_paused = should_pause
            if should_pause:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    # Called by the listener

    @property
    def certificate(self) -> dict[str, Any] | None:
        """The subject of the client's certificate, if it presented a trusted one."""
        found: dict[str, Any] | None = self._transport.get_extra_info("peercert")
        return found or None

    @property
    def held_bytes(self) -> int:
        """The number of bytes held for its requests."""
        return self._frames.pending_bytes + self._backlog_bytes

    @property
    def is_stalled(self) -> bool:
        """Whether a request is incomplete although we read, or a response is not being read."""
        return (self._frames.pending_bytes > 0 and not self._is_reading_paused) or self._unsent_bytes > 0

    @property
    def _unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def quiet_s(self, now_s: float) -> float:
        """How long it has been idle, as far as calls of this method can tell.

        While stalled, a trickle does not count as activity, or one byte now and then would keep it alive forever.
        """
        is_stalled = self.is_stalled
        least = _LEAST_PROGRESS_BYTES if is_stalled and self._was_stalled else 1
        self._was_stalled = is_stalled
        moved = self._moved - self._unsent_bytes
        if abs(moved - self._moved_before) >= least:
            self._moved_before = moved
            self._quiet_since_s = now_s
        return now_s - self._quiet_since_s

    def close(self) -> None:
        """Send pending data, then close."""
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._is_over = True
        self._transport.abort()
