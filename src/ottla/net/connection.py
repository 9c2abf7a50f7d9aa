"""One client's connection: frames in, answers out, one request at a time and in order."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from ottla.core.errors import ProtocolError
from ottla.wire.frame import FrameParser

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ottla.wire.declare import AnyBytes

_ANSWERS_AT_ONCE: Final = 64
_BACKLOG_FRAMES: Final = 64
"""A client may send this many requests ahead; then its socket is not read until some are answered."""


class Service(Protocol):
    """What a connection needs of the one who serves it."""

    max_frame_bytes: int
    scratch: bytearray
    """Where bytes are received; empty between two reads, so all connections of a loop share it."""

    def opened(self, connection: Connection) -> bool:
        """Whether this connection may stay."""

    def closed(self, connection: Connection) -> None: ...

    def answer(
        self, connection: Connection, frame: memoryview
    ) -> list[AnyBytes] | Awaitable[list[AnyBytes] | None] | None:
        """The buffers to send for this request, now or later; None if it gets no answer."""

    def refused(self, connection: Connection, reason: Exception) -> None:
        """This connection is hung up on, and why."""

    def failed(self, connection: Connection, error: BaseException) -> None:
        """A bug of ours while answering; the connection is closed."""


class Connection(asyncio.BufferedProtocol):
    __slots__ = (
        "_backlog",
        "_frames",
        "_idle_since_s",
        "_is_closed",
        "_is_reading_paused",
        "_is_writing_paused",
        "_pending",
        "_seen_activity",
        "_service",
        "_transport",
        "activity",
        "local",
        "peer",
        "state",
    )

    def __init__(self, service: Service) -> None:
        self._service = service
        self._frames = FrameParser(service.max_frame_bytes, service.scratch)
        self._backlog: deque[memoryview] = deque()
        self._transport: asyncio.Transport | None = None
        self._pending: asyncio.Task[list[AnyBytes] | None] | None = None
        self._is_reading_paused = False
        self._is_writing_paused = False
        self._is_closed = False
        self.peer = ("", 0)
        self.local = ("", 0)
        self.activity = 0
        self._seen_activity = -1
        self._idle_since_s = 0.0
        self.state: dict[str, object] = {}
        """What the broker wants to remember of this client."""

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # it is a socket's
        self.peer = (transport.get_extra_info("peername") or ("?", 0))[:2]
        self.local = (transport.get_extra_info("sockname") or ("?", 0))[:2]
        if not self._service.opened(self):
            self.abort()

    def get_buffer(self, sizehint: int) -> bytearray | memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self.activity += 1
        try:
            frames = self._frames.buffer_updated(nbytes)
        except ProtocolError as broken:
            self._service.refused(self, broken)
            self.abort()
            return
        if self._pending is None and not self._backlog and not self._is_writing_paused and len(frames) == 1:
            if answer := self._answer(frames[0]):
                self._write(answer)
            return
        self._backlog.extend(frames)
        self._serve_backlog()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - whatever the reason, it is gone
        self._is_closed = True
        self._backlog.clear()
        if self._pending is not None:
            self._pending.cancel()
        self._service.closed(self)

    def pause_writing(self) -> None:
        self._is_writing_paused = True

    def resume_writing(self) -> None:
        self._is_writing_paused = False
        self._serve_backlog()

    # Serving

    def _serve_backlog(self) -> None:
        # Answers that are ready together go out together: sending costs more than a small request does.
        ready: list[AnyBytes] = []
        while self._backlog and self._pending is None and not self._is_writing_paused and not self._is_closed:
            ready += self._answer(self._backlog.popleft())
            if len(ready) >= _ANSWERS_AT_ONCE:
                self._write(ready)
                ready = []
        if ready:
            self._write(ready)
        is_too_far_ahead = len(self._backlog) >= _BACKLOG_FRAMES
        if is_too_far_ahead != self._is_reading_paused and self._transport is not None and not self._is_closed:
            self._is_reading_paused = is_too_far_ahead
            if is_too_far_ahead:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _answer(self, frame: memoryview) -> list[AnyBytes]:
        """What to send for this request now: nothing, if it gets no answer or a later one."""
        try:
            answer = self._service.answer(self, frame)
        except ProtocolError as broken:
            self._service.refused(self, broken)
            self.abort()
        except Exception as error:  # noqa: BLE001 - a bug of ours must cost no more than this connection
            self._service.failed(self, error)
            self.abort()
        else:
            if isinstance(answer, list):
                return answer
            if answer is not None:
                self._pending = asyncio.ensure_future(answer)
                self._pending.add_done_callback(self._answered)
        return []

    def _write(self, buffers: list[AnyBytes]) -> None:
        if self._is_closed:
            return
        if len(buffers) == 1:
            self._transport.write(buffers[0])  # type: ignore[union-attr]
        else:
            self._transport.writelines(buffers)  # type: ignore[union-attr]

    def _answered(self, task: asyncio.Task[list[AnyBytes] | None]) -> None:
        self._pending = None
        if task.cancelled() or self._is_closed:
            return
        error = task.exception()
        if isinstance(error, ProtocolError):
            self._service.refused(self, error)
            self.abort()
        elif error is not None:
            self._service.failed(self, error)
            self.abort()
        else:
            answer = task.result()
            if answer is not None:
                self._write(answer)
            self._serve_backlog()

    # What the broker asks

    @property
    def is_stalled(self) -> bool:
        """Half a request has come, or an answer is not being read."""
        return self._frames.pending_bytes > 0 or self._is_writing_paused

    def idle_s(self, now_s: float) -> float:
        """How long nothing has come, as far as the calls of this method can tell.

        Counting what comes is cheaper than looking at the clock each time.
        """
        if self.activity != self._seen_activity:
            self._seen_activity = self.activity
            self._idle_since_s = now_s
        return now_s - self._idle_since_s

    @property
    def is_busy(self) -> bool:
        """A request is being answered."""
        return self._pending is not None or bool(self._backlog)

    def close(self) -> None:
        """Send what is under way, then close."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._is_closed = True
        if self._transport is not None:
            self._transport.abort()
