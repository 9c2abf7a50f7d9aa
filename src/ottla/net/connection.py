"""One client's connection: frames in, answers out, one request at a time and in order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.core.errors import ProtocolError
from ottla.core.security import ANONYMOUS
from ottla.wire.frame import BrokenFrame, FrameParser

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ottla.core.ids import Address
    from ottla.wire.declare import AnyBytes

_AHEAD_FRAMES: Final = 64
_AHEAD_BYTES: Final = 1 << 20
"""A client may send this much ahead; then its socket is not read until some of it is answered."""
LOGIN_FRAME_BYTES: Final = 128 * 1024
_LOGIN_AHEAD_BYTES: Final = 64 * 1024
"""The same before a login, where one is needed. Together with one read (SCRATCH_BYTES), the request being answered
and one that is half received, no more than 512 KiB are held for a client that has not logged in."""
_TURN_FRAMES: Final = 64
"""So many requests of one client are answered in a row; then others get their turn."""
_READY_BUFFERS: Final = 64
_READY_BYTES: Final = 16 * 1024
"""Answers smaller than this go out together, so many at a time; a larger one goes out at once."""
_LEAST_PROGRESS_BYTES: Final = 1024
"""Less than this does not count as progress of a request that comes in bit by bit, or an answer that goes out so."""


class Service(Protocol):
    """What a connection needs of the one who serves it."""

    max_frame_bytes: int
    needs_login: bool
    """Until `Connection.admit` is called, its clients may send little."""
    name: str
    """Of the listener: in a cluster, clients are told the addresses of the others' listeners of this name."""
    advertised: Address | None
    """Where its clients are told to connect to, if not to where they are."""
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

    def half_received(self, size: int) -> None:
        """So many more bytes are held of a request that is not complete."""

    def slowed(self, connection: Connection, size: int) -> None:
        """So many bytes of answers are held for a client that does not read them as fast as they come."""

    def caught_up(self, connection: Connection) -> None:
        """The client has read what was held for it."""


class Connection(asyncio.BufferedProtocol):
    __slots__ = (
        "_ahead_bytes",
        "_backlog",
        "_backlog_bytes",
        "_frames",
        "_has_turn_coming",
        "_is_finishing",
        "_is_over",
        "_is_reading_paused",
        "_is_writing_paused",
        "_moved",
        "_moved_before",
        "_mute_s",
        "_pending",
        "_quiet_since_s",
        "_service",
        "_transport",
        "_was_stalled",
        "groups",
        "local",
        "login",
        "peer",
        "principal",
        "state",
    )

    _transport: asyncio.Transport

    def __init__(self, service: Service) -> None:
        self._service = service
        most_bytes = service.max_frame_bytes
        self._frames = FrameParser(
            min(LOGIN_FRAME_BYTES, most_bytes) if service.needs_login else most_bytes, service.scratch
        )
        self._ahead_bytes = _LOGIN_AHEAD_BYTES if service.needs_login else _AHEAD_BYTES
        # A list, not a deque: nearly always empty, and a deque holds half a kilobyte even then.
        self._backlog: list[memoryview] = []
        self._backlog_bytes = 0
        self._pending: asyncio.Task[list[AnyBytes] | None] | None = None
        self._has_turn_coming = False
        self._is_reading_paused = False
        self._is_writing_paused = False
        self._is_finishing = False
        self._is_over = False
        self._moved = 0  # grows with all that comes, which is cheaper than to look at the clock each time
        self._moved_before = 0
        self._was_stalled = False
        self._quiet_since_s = 0.0
        self._mute_s = 0.0
        self.peer = ("", 0)
        self.local = ("", 0)
        self.principal = ANONYMOUS
        self.groups: tuple[str, ...] = ()
        self.login: object = None
        """How far it is with saying who it is, where it has to; the gate of its port knows what this is."""
        self.state: dict[str, object] = {}
        """What the broker wants to remember of this client."""

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # it is a socket's
        self._quiet_since_s = asyncio.get_running_loop().time()
        self.peer = (transport.get_extra_info("peername") or ("?", 0))[:2]
        self.local = (transport.get_extra_info("sockname") or ("?", 0))[:2]
        if not self._service.opened(self):
            self.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        # A view: asyncio's TLS puts a slice of what it gets behind the first piece, and a bytearray's is a copy.
        return memoryview(self._frames.get_buffer(sizehint))

    def buffer_updated(self, nbytes: int) -> None:
        self._moved += nbytes
        try:
            frames = self._frames.buffer_updated(nbytes)
        except BrokenFrame as broken:
            self._end_with(broken)
            return
        if len(frames) == 1 and self._pending is None and not self._backlog and not self._is_writing_paused:
            answer = self._answer(frames[0])
            if answer:
                self._send(answer)
        elif frames:
            self._take_on(frames)
        else:
            self._service.half_received(nbytes)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - whatever the reason, it is gone
        self._is_over = True
        self._backlog.clear()
        self._backlog_bytes = 0
        if self._pending is not None:
            # Not before it has begun, or what it is to wait for would never be waited for.
            asyncio.get_running_loop().call_soon(self._pending.cancel)
        self._service.closed(self)

    def pause_writing(self) -> None:
        self._is_writing_paused = True
        self._service.slowed(self, self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._is_writing_paused = False
        self._service.caught_up(self)
        self._serve_backlog()

    # Serving

    def _answer(self, frame: memoryview) -> list[AnyBytes]:
        """What to send for this request now: nothing, if it gets no answer or a later one."""
        try:
            answer = self._service.answer(self, frame)
        except Exception as error:  # noqa: BLE001 - a bug of ours must cost no more than this connection
            self._hang_up(error)
            return []
        if isinstance(answer, list):
            return answer
        if answer is not None:
            self._pending = asyncio.ensure_future(answer)
            self._pending.add_done_callback(self._answered)
        return []

    def _send(self, buffers: list[AnyBytes]) -> None:
        if len(buffers) == 1:
            self._transport.write(buffers[0])
        else:
            self._transport.writelines(buffers)

    def _take_on(self, frames: list[memoryview]) -> None:
        self._backlog += frames
        self._backlog_bytes += sum(map(len, frames))
        self._serve_backlog()

    def _end_with(self, broken: BrokenFrame) -> None:
        """Answer what came before this, then hang up."""
        self._service.refused(self, broken)
        self._is_finishing = True
        self._take_on(broken.complete)

    def _serve_backlog(self) -> None:
        """Serve what was sent ahead, as far as may be now.

        Small answers go out together: sending costs more than a small request does.
        """
        ready: list[AnyBytes] = []
        served = 0
        for frame in self._backlog:
            if self._pending is not None or self._is_writing_paused or self._is_over:
                break
            if served == _TURN_FRAMES:
                self._ask_for_a_turn()
                break
            served += 1
            answer = self._answer(frame)
            if answer:
                ready += answer
                if len(answer) > 1 or len(ready) >= _READY_BUFFERS or len(answer[0]) > _READY_BYTES:
                    self._send(ready)
                    ready = []
        if ready:
            self._send(ready)
        self._backlog_bytes -= sum(map(len, self._backlog[:served]))
        del self._backlog[:served]
        self._control_reading()
        if self._is_finishing and not self.is_busy:
            self.close()

    def _ask_for_a_turn(self) -> None:
        if not self._has_turn_coming:
            self._has_turn_coming = True
            asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._has_turn_coming = False
        if not self._is_over:
            self._serve_backlog()

    def _answered(self, task: asyncio.Task[list[AnyBytes] | None]) -> None:
        self._pending = None
        self._moved += 1
        if task.cancelled():
            self._transport.close()
        elif (error := task.exception()) is not None:
            self._hang_up(error)
        elif not self._is_over:
            answer = task.result()
            if answer is not None:
                self._send(answer)
            if self._mute_s:
                self.mute_for(self._mute_s)
            self._serve_backlog()

    def mute_for(self, seconds: float) -> None:
        """Serve nothing more of this client for so long, once what is being answered is answered."""
        if self._pending is not None:
            self._mute_s = seconds
            return
        self._mute_s = 0.0
        self._pending = asyncio.ensure_future(asyncio.sleep(seconds, None))
        self._pending.add_done_callback(self._answered)

    def _control_reading(self) -> None:
        is_far_ahead = len(self._backlog) >= _AHEAD_FRAMES or self._backlog_bytes >= self._ahead_bytes
        should_pause = is_far_ahead or self._is_finishing or self._is_over
        if should_pause != self._is_reading_paused:
            self._is_reading_paused = should_pause
            if should_pause:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _hang_up(self, error: BaseException) -> None:
        if isinstance(error, ProtocolError):
            self._service.refused(self, error)
        else:
            self._service.failed(self, error)
        self._is_over = True
        self._control_reading()
        # Not at once: the answers to earlier requests may still be about to be written.
        asyncio.get_running_loop().call_soon(self.close)

    # What the listener and the broker ask

    @property
    def advertised(self) -> Address | None:
        return self._service.advertised

    @property
    def listener(self) -> str:
        return self._service.name

    @property
    def certificate(self) -> dict[str, Any] | None:
        """What the client's certificate says, if it showed one that is trusted here."""
        found: dict[str, Any] | None = self._transport.get_extra_info("peercert")
        return found or None

    @property
    def is_busy(self) -> bool:
        """A request is being answered."""
        return not self._is_over and (self._pending is not None or bool(self._backlog))

    @property
    def held_bytes(self) -> int:
        """How much of its requests is held."""
        return self._frames.pending_bytes + self._backlog_bytes

    @property
    def is_stalled(self) -> bool:
        """Half a request has come, though we would read more, or an answer is not being read."""
        return (self._frames.pending_bytes > 0 and not self._is_reading_paused) or self._unsent_bytes > 0

    @property
    def _unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def quiet_s(self, now_s: float) -> float:
        """How long nothing has come or gone, as far as the calls of this method can tell.

        While it is stalled a trickle is nothing, or one byte now and then would keep it for ever.
        """
        is_stalled = self.is_stalled
        least = _LEAST_PROGRESS_BYTES if is_stalled and self._was_stalled else 1
        self._was_stalled = is_stalled
        moved = self._moved - self._unsent_bytes
        if abs(moved - self._moved_before) >= least:
            self._moved_before = moved
            self._quiet_since_s = now_s
        return now_s - self._quiet_since_s

    def admit(self) -> None:
        """It has logged in: let it send as much as any client may."""
        self._frames.allow(self._service.max_frame_bytes)
        self._ahead_bytes = _AHEAD_BYTES

    def finish(self) -> None:
        """Answer what has come, then close."""
        self._is_finishing = True
        self._control_reading()
        if not self.is_busy:
            self.close()

    def close(self) -> None:
        """Send what is under way, then close."""
        self._transport.close()

    def end_with(self, data: bytes) -> None:
        """Send this in place of whatever is being answered, then close."""
        self._is_over = True
        self._transport.write(data)
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._is_over = True
        self._transport.abort()
