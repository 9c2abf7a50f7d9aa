"""Cuts a stream of bytes into frames, however the network split it.

A frame is a 4-byte size and that many bytes. Each is handed out as a writable memoryview of memory of its
own, so it may outlive the next read, and a log may stamp offsets into its record batches in place.

The reader asks for a buffer, receives into it, and says how much came (asyncio.BufferedProtocol). Small
frames are received into a scratch buffer, many at a time, and copied out. The scratch is empty between two
reads, so all connections of a loop can share one, and an idle connection holds no memory. A large frame is
received straight into its own memory, which grows with what has arrived: announcing 100 MiB and sending
nothing costs the broker nothing.
"""

from __future__ import annotations

from struct import Struct as Format
from typing import Final

from ottla.core.errors import ProtocolError

try:
    from ottla.wire.reader import unwritten
except ImportError:  # not compiled: zeros first
    unwritten = bytearray

DEFAULT_MAX_FRAME_BYTES: Final = 100 * 1024 * 1024
"""socket.request.max.bytes of Kafka."""
SCRATCH_BYTES: Final = 128 * 1024

_SIZE: Final = Format(">i")
_SIZE_BYTES: Final = 4
_DIRECT_BYTES: Final = 64 * 1024
"""From here on, what is missing of a frame is received in place; below, a read may bring several frames."""
TRUSTED_BYTES: Final = 64 * 1024
"""A frame up to this size gets its memory when it is announced, whoever announces it."""
_GROWTH: Final = 16
"""A larger one has at most so many times the memory that has arrived."""

_NO_FRAME: Final = memoryview(b"")
_TLS: Final = (b"\x16\x03", b"\x15\x03")  # a client's greeting, a server's alert
_HTTP: Final = (b"HTTP", b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")
_FOREIGN: Final = {
    _TLS: "this looks like TLS on a plaintext port",
    _HTTP: "this looks like HTTP on the Kafka port",
    (b"SSH-",): "this looks like SSH on the Kafka port",
    (b"AMQP",): "this looks like AMQP on the Kafka port",
}


class BrokenFrame(ProtocolError):
    """What comes after `complete`, the frames of this read that are whole, is no frame."""

    def __init__(self, reason: str, complete: list[memoryview]) -> None:
        super().__init__(reason)
        self.complete = complete


class FrameParser:
    """One connection's frames, of which the last may be half received."""

    __slots__ = ("_filled", "_frame", "_head", "_is_direct", "_is_first", "_max_bytes", "_scratch", "_size", "_trusted")

    def __init__(
        self,
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
        scratch: bytearray | None = None,
        trusted_bytes: int = TRUSTED_BYTES,
    ) -> None:
        self._max_bytes = max_frame_bytes
        self._trusted = trusted_bytes
        self._scratch = bytearray(SCRATCH_BYTES) if scratch is None else scratch
        self._head = bytearray()  # the first bytes of a size
        self._frame = _NO_FRAME
        self._size = 0  # of the frame under way; 0 if there is none
        self._filled = 0
        self._is_direct = False
        self._is_first = True

    def allow(self, max_frame_bytes: int) -> None:
        """From now on, frames may be this large."""
        self._max_bytes = max_frame_bytes

    @property
    def pending_bytes(self) -> int:
        """How much has arrived of a frame that is not complete; 0 between frames."""
        return _SIZE_BYTES + self._filled if self._size else len(self._head)

    def get_buffer(self, _sizehint: int = -1) -> bytearray | memoryview:
        """Where to receive the next bytes."""
        self._is_direct = self._size - self._filled >= _DIRECT_BYTES
        return self._unfilled() if self._is_direct else self._scratch

    def buffer_updated(self, count: int) -> list[memoryview]:
        """So many bytes were received into the buffer: the frames they completed, in order."""
        if not self._is_direct:
            return self._cut(self._scratch, count)
        self._filled += count
        return [self._complete()] if self._filled == self._size else []

    def feed(self, data: bytes | bytearray) -> list[memoryview]:
        """Take bytes that were received elsewhere: the frames they completed, in order."""
        return self._cut(bytearray(data), len(data))

    def _cut(self, data: bytearray, count: int) -> list[memoryview]:
        frames: list[memoryview] = []
        position = 0
        if self._head:
            data = self._head + data[:count]
            count = len(data)
            self._head = bytearray()
        elif self._size:
            position = self._fill(data, count)
            if self._filled < self._size:
                return frames
            frames.append(self._complete())
        while count - position >= _SIZE_BYTES:
            [size] = _SIZE.unpack_from(data, position)
            begin = position + _SIZE_BYTES
            if self._is_first or not 0 <= size <= self._max_bytes:
                self._check(data[position:begin], size, frames)
            position = begin + size
            if position > count:
                self._begin(size, data[begin:count])
                return frames
            frames.append(memoryview(data[begin:position]))
        if position < count:
            self._head = data[position:count]
        return frames

    def _begin(self, size: int, arrived: bytearray) -> None:
        memory = unwritten(min(size, max(self._trusted, _GROWTH * len(arrived))))
        memory[: len(arrived)] = arrived
        self._frame = memoryview(memory)
        self._size = size
        self._filled = len(arrived)

    def _fill(self, data: bytearray, count: int) -> int:
        """Bring the frame under way as far as the data goes; return how much of it that took."""
        taken = 0
        while taken < count and self._filled < self._size:
            memory = self._unfilled()
            step = min(len(memory), count - taken)
            memory[:step] = data[taken : taken + step]
            taken += step
            self._filled += step
        return taken

    def _unfilled(self) -> memoryview:
        if self._filled == len(self._frame):
            larger = unwritten(min(self._size, _GROWTH * self._filled))
            larger[: self._filled] = self._frame
            self._frame = memoryview(larger)
        return self._frame[self._filled :]

    def _complete(self) -> memoryview:
        frame, self._frame = self._frame, _NO_FRAME
        self._size = self._filled = 0
        return frame

    def _check(self, head: bytearray, size: int, complete: list[memoryview]) -> None:
        if self._is_first:
            for beginnings, what in _FOREIGN.items():
                if head.startswith(beginnings):
                    raise BrokenFrame(what, complete)
            self._is_first = False
        if size < 0:
            raise BrokenFrame(f"a frame of {size} bytes", complete)
        if size > self._max_bytes:
            raise BrokenFrame(f"a frame of {size} bytes, the most allowed is {self._max_bytes}", complete)
