"""Sends responses that contain ranges of files, past the transport, whose buffer must be empty."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Final

from ottla.core.file_range import FileRange

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.wire.declare import AnyBytes, Sendable

_LAST: Final = int(socket.MSG_DONTWAIT)
_WITH_MORE: Final = _LAST | int(socket.MSG_MORE)


def begin_sending(transport: asyncio.Transport, buffers: list[Sendable]) -> FileSending | None:
    """None if the transport has something to send before, is closing, or is not a socket."""
    end = transport.get_extra_info("socket")
    if end is None or transport.get_write_buffer_size() or transport.is_closing():
        return None
    try:
        return FileSending(os.dup(end.fileno()), buffers)
    except OSError:  # no descriptor left
        return None


def in_memory(buffers: list[Sendable]) -> list[AnyBytes]:
    return [bytes(buffer) if isinstance(buffer, FileRange) else buffer for buffer in buffers]


class FileSending:
    """A response that is being sent, on a duplicate of the descriptor: the transport may close the original."""

    def __init__(self, fd: int, buffers: list[Sendable]) -> None:
        # The family does not matter for sending, but would be looked up.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fd)
        self._buffers = buffers[::-1]
        self._start = 0  # in the last of them
        self.unsent_bytes = sum(map(len, buffers))
        self._waits_in: asyncio.AbstractEventLoop | None = None

    @property
    def held_bytes(self) -> int:
        """The bytes that are in memory."""
        return sum(len(buffer) for buffer in self._buffers if not isinstance(buffer, FileRange))

    def send(self) -> bool:
        """Send as much as the socket takes; whether that was everything. Raises OSError if it failed."""
        buffers = self._buffers
        while buffers:
            buffer = buffers[-1]
            try:
                if isinstance(buffer, FileRange):
                    sent = buffer.send(self._socket.fileno(), self._start)
                else:
                    rest = memoryview(buffer)[self._start :] if self._start else buffer
                    sent = self._socket.send(rest, _WITH_MORE if len(buffers) > 1 else _LAST)
            except BlockingIOError:
                return False
            self.unsent_bytes -= sent
            self._start += sent
            if self._start == len(buffer):
                buffers.pop()
                self._start = 0
        return True

    def when_writable(self, continue_sending: Callable[[], None]) -> None:
        if self._waits_in is None:
            self._waits_in = asyncio.get_running_loop()
            self._waits_in.add_writer(self._socket.fileno(), continue_sending)

    def end(self) -> None:
        if self._waits_in is not None:
            self._waits_in.remove_writer(self._socket.fileno())
        self._socket.close()
        self._buffers.clear()
