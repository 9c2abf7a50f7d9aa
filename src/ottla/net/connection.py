"""One client connection: frames in, responses out, one request at a time and in order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ProtocolError
from ottla.core.file_range import FileRange
from ottla.core.security import ANONYMOUS
from ottla.net.client_stream import AHEAD_BYTES, ClientStream
from ottla.wire.frame import BrokenFrame, FrameParser

if TYPE_CHECKING:
    from ottla.core.ids import Address
    from ottla.net.file_sending import FileSending
    from ottla.net.service import InPlace, Service, Waiting
    from ottla.wire.declare import Sendable

LOGIN_FRAME_BYTES: Final = 128 * 1024
_LOGIN_AHEAD_BYTES: Final = 64 * 1024
"""The limit of pipelined bytes before a required authentication. Together with one read (SCRATCH_BYTES), the current
request and an incomplete one, at most 512 KiB are held for an unauthenticated client.
"""
_TURN_FRAMES: Final = 64
"""This many requests of one client are answered in a row; then the event loop runs."""
_READY_BUFFERS: Final = 64
_READY_BYTES: Final = 16 * 1024
"""Responses smaller than this are sent together, up to this total; a larger one is sent at once."""


class Connection(ClientStream[memoryview, FrameParser], asyncio.BufferedProtocol):
    __slots__ = (
        "_has_turn_coming",
        "_is_closing",
        "_mute_s",
        "_pending",
        "_sending",
        "_service",
        "groups",
        "login",
        "principal",
        "state",
    )

    AHEAD_FRAMES = 64

    def __init__(self, service: Service) -> None:
        most_bytes = min(LOGIN_FRAME_BYTES, service.max_frame_bytes) if service.needs_login else service.max_frame_bytes
        super().__init__(FrameParser(most_bytes, service.scratch))
        self._service = service
        if service.needs_login:
            self._ahead_bytes = _LOGIN_AHEAD_BYTES
        self._pending: asyncio.Task[list[Sendable] | None] | Waiting | None = None
        self._sending: FileSending | None = None
        self._has_turn_coming = False
        self._is_closing = False
        self._mute_s = 0.0
        self.principal = ANONYMOUS
        self.groups: tuple[str, ...] = ()
        self.login: object = None
        """The authentication state, if required; owned by the gate of the port."""
        self.state: dict[str, object] = {}
        """State of this client that belongs to the broker."""

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self._service.opened(self):
            self.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._moved += nbytes
        processed = 0
        in_place = self._service.in_place
        # Reading is also paused if no further requests will be answered.
        if in_place is not None and not (
            self._pending or self._backlog or self._is_writing_paused or self._is_reading_paused
        ):
            count = self._frames.in_scratch(nbytes)
            if count and (processed := self._serve_in_place(in_place, count)) == count:
                self._frames.clear()
                return
        try:
            frames = self._frames.buffer_updated(nbytes, processed)
        except BrokenFrame as broken:
            self._end_with(broken)
            return
        if len(frames) == 1 and self._pending is None and not self._backlog and not self._is_writing_paused:
            answer = self._answer(frames[0])
            if answer:
                self._send(answer)
        elif frames:
            self._take_on(frames)
        elif not processed:
            self._service.half_received(nbytes)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._sending is not None:
            self._sending.end()
        if self._pending is not None:
            # Not before the task has started, or its wait would never be cancelled.
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

    def _serve_in_place(self, in_place: InPlace, count: int) -> int:
        """Serve requests in these bytes, in the receive buffer; returns the size of the served requests."""
        try:
            served = in_place.serve(self._service.scratch, count, self._service.sends_files)
        except Exception as error:  # noqa: BLE001 - a bug of ours must cost no more than this connection
            self._hang_up(error)
            return count
        if served:
            if answers := in_place.take_answers():
                self._write(answers)
            if (wait := in_place.take_wait()) is not None:
                self._pending = wait
                wait.when_done(self._answered_in_place)
        return served

    def _write(self, answers: bytes | list[Sendable]) -> None:
        if isinstance(answers, bytes):
            self._transport.write(answers)
        else:
            self._send_files(answers)

    def _answered_in_place(self, answer: bytes | memoryview | list[Sendable]) -> None:
        self._pending = None
        if self._transport.is_closing():
            return
        self._moved += 1
        if isinstance(answer, memoryview):
            self._backlog.insert(0, answer)
            self._backlog_bytes += len(answer)
        else:
            self._write(answer)
        self._serve_backlog()

    def _answer(self, frame: memoryview) -> list[Sendable]:
        """The buffers to send now; none if there is no response, or only a later one."""
        try:
            answer = self._service.answer(self, frame)
        except Exception as error:  # noqa: BLE001 - a bug of ours must cost no more than this connection
            self._hang_up(error)
            return []
        if isinstance(answer, list):
            return answer
        if answer is not None:
            self._pending = task = asyncio.ensure_future(answer)
            task.add_done_callback(self._answered)
        return []

    def _send(self, buffers: list[Sendable]) -> None:
        if len(buffers) == 1:
            self._transport.write(buffers[0])  # type: ignore[arg-type]  # a range of a file is never alone
        elif any(isinstance(buffer, FileRange) for buffer in buffers):
            self._send_files(buffers)
        else:
            self._transport.writelines(buffers)  # type: ignore[arg-type]

    def _send_files(self, buffers: list[Sendable]) -> None:
        from ottla.net.file_sending import begin_sending, in_memory

        self._sending = begin_sending(self._transport, buffers)
        if self._sending is not None:
            self._go_on_sending()
            return
        try:
            self._transport.writelines(in_memory(buffers))
        except OSError:  # the file cannot be read
            self.abort()

    def _go_on_sending(self) -> None:
        sending = self._sending
        if sending is None or self._transport.is_closing():
            return
        try:
            is_sent = sending.send()
        except OSError:  # the client is gone, or the file cannot be read
            self.abort()
            return
        if is_sent:
            sending.end()
            self._sending = None
            if self._is_writing_paused:
                self._moved += 1
                self.resume_writing()
            if self._is_closing:
                self.close()
        elif not self._is_writing_paused:
            self._is_writing_paused = True
            self._service.slowed(self, sending.held_bytes)
            sending.when_writable(self._go_on_sending)

    def _take_on(self, frames: list[memoryview]) -> None:
        self._backlog += frames
        self._backlog_bytes += sum(map(len, frames))
        self._serve_backlog()

    def _end_with(self, broken: BrokenFrame) -> None:
        """Answer the requests before this one, then close."""
        self._service.refused(self, broken)
        self._is_finishing = True
        self._take_on(broken.complete)

    def _serve_backlog(self) -> None:
        """Serve pipelined requests as far as possible without waiting.

        Small responses are sent together: sending costs more than a small request.
        """
        ready: list[Sendable] = []
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
        self._answered_first(served, sum(map(len, self._backlog[:served])))
        self._control_reading(is_wanted=not (self._is_finishing or self._is_over))
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

    def _answered(self, task: asyncio.Task[list[Sendable] | None]) -> None:
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
        """Mute this client for this long, after the current request is answered."""
        if self._pending is not None:
            self._mute_s = seconds
            return
        self._mute_s = 0.0
        self._pending = task = asyncio.ensure_future(asyncio.sleep(seconds, None))
        task.add_done_callback(self._answered)

    def _hang_up(self, error: BaseException) -> None:
        if isinstance(error, ProtocolError):
            self._service.refused(self, error)
        else:
            self._service.failed(self, error)
        self._is_over = True
        self._control_reading(is_wanted=False)
        # Not closed at once: responses to earlier requests may still have to be written.
        asyncio.get_running_loop().call_soon(self.close)

    # Called by the listener and the broker

    @property
    def advertised(self) -> Address | None:
        return self._service.advertised

    @property
    def sends_files(self) -> bool:
        """Whether the records of a response may be ranges of files."""
        return self._service.sends_files

    @property
    def listener(self) -> str:
        return self._service.name

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return not self._is_over and (self._pending is not None or bool(self._backlog))

    @property
    def _unsent_bytes(self) -> int:
        unsent = 0 if self._sending is None else self._sending.unsent_bytes
        return unsent + self._transport.get_write_buffer_size()

    def close(self) -> None:
        if self._sending is None:
            super().close()
        else:
            self._is_closing = True

    def admit(self) -> None:
        """Apply the normal limits after authentication."""
        self._frames.allow(self._service.max_frame_bytes)
        self._ahead_bytes = AHEAD_BYTES

    def finish(self) -> None:
        """Answer the received requests, then close."""
        self._is_finishing = True
        self._control_reading(is_wanted=False)
        if not self.is_busy:
            self.close()

    def end_with(self, data: bytes) -> None:
        """Send this instead of the current response, then close."""
        self._is_over = True
        self._transport.write(data)
        self._transport.close()
