"""Splits a byte stream into frames.

A frame is a 4-byte size and that many bytes. Each is returned as a writable memoryview of separate memory,
so it may outlive the next read, and a log may write offsets into its record batches in place.

The caller gets a buffer, receives into it, and reports the number of bytes (asyncio.BufferedProtocol). Small
frames are received into a scratch buffer, many at a time, and copied out. The scratch buffer is empty between two
reads, so all connections of a loop can share it, and an idle connection holds no memory. The start of an incomplete
small frame is kept, and copied back in front of the next bytes: it is then complete in the scratch buffer, where
`in_scratch` lets the caller look at it before it is copied out. A large frame is
received directly into its memory, which grows with the data received: announcing 100 MiB and sending
nothing allocates nothing.
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
"""Kafka's socket.request.max.bytes."""
SCRATCH_BYTES: Final = 128 * 1024

_SIZE: Final = Format(">i")
_SIZE_BYTES: Final = 4
_SMALL_BYTES: Final = 32 * 1024
"""A frame up to this size is completed in the scratch buffer."""
_DIRECT_BYTES: Final = 64 * 1024
"""From this size on, the rest of a frame is received in place; below, a read may contain several frames."""
TRUSTED_BYTES: Final = 64 * 1024
"""A frame up to this size is allocated when announced."""
_GROWTH: Final = 16
"""A larger frame gets at most this many times its received size allocated."""

_NO_FRAME: Final = memoryview(b"")
_NO_HEAD: Final = bytearray()
_TLS: Final = (b"\x16\x03", b"\x15\x03")  # a client's greeting, a server's alert
_HTTP: Final = (b"HTTP", b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")
_FOREIGN: Final = {
    _TLS: "this looks like TLS on a plaintext port",
    _HTTP: "this looks like HTTP on the Kafka port",
    (b"SSH-",): "this looks like SSH on the Kafka port",
    (b"AMQP",): "this looks like AMQP on the Kafka port",
}


class BrokenFrame(ProtocolError):
    """The data after `complete`, the complete frames of this read, is not a valid frame."""

    def __init__(self, reason: str, complete: list[memoryview]) -> None:
        super().__init__(reason)
        self.complete = complete


class FrameParser:
    """The frames of one connection, of which the last may be incomplete."""

    __slots__ = (
        "_filled",
        "_frame",
        "_head",
        "_is_direct",
        "_is_first",
        "_max_bytes",
        "_scratch",
        "_size",
        "_small",
        "_trusted",
    )

    def __init__(
        self,
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
        scratch: bytearray | None = None,
        trusted_bytes: int = TRUSTED_BYTES,
    ) -> None:
        self._max_bytes = max_frame_bytes
        self._trusted = trusted_bytes
        self._scratch = bytearray(SCRATCH_BYTES) if scratch is None else scratch
        self._small = min(_SMALL_BYTES, len(self._scratch) // 2)
        self._head = _NO_HEAD  # the first bytes of a size or of a small frame
        self._frame = _NO_FRAME
        self._size = 0  # of the current frame; 0 if there is none
        self._filled = 0
        self._is_direct = False
        self._is_first = True

    def allow(self, max_frame_bytes: int) -> None:
        """Change the maximum frame size."""
        self._max_bytes = max_frame_bytes

    @property
    def pending_bytes(self) -> int:
        """The received size of an incomplete frame; 0 between frames."""
        return _SIZE_BYTES + self._filled if self._size else len(self._head)

    def get_buffer(self, _sizehint: int = -1) -> memoryview:
        """The buffer for the next bytes."""
        # A memoryview: asyncio's TLS slices it, and a slice of a bytearray is a copy.
        if head := self._head:
            self._scratch[: len(head)] = head
            return memoryview(self._scratch)[len(head) :]
        self._is_direct = self._size - self._filled >= _DIRECT_BYTES
        return self._unfilled() if self._is_direct else memoryview(self._scratch)

    def in_scratch(self, count: int) -> int:
        """The number of bytes in the scratch buffer, from the start of a frame, after this many were received.

        0 if a large frame is incomplete. The caller may process complete frames there, and pass their size to
        `buffer_updated`.
        """
        return 0 if self._size else len(self._head) + count

    def clear(self) -> None:
        """Drop the contents of `in_scratch`, which the caller has processed."""
        self._head = _NO_HEAD

    def buffer_updated(self, count: int, processed: int = 0) -> list[memoryview]:
        """Process this many bytes received into the buffer; returns the completed frames, in order.

        The frames in the first `processed` bytes of the scratch buffer are skipped.
        """
        if not self._is_direct:
            count += len(self._head)
            self._head = _NO_HEAD
            return self._cut(self._scratch, count, processed)
        self._filled += count
        return [self._complete()] if self._filled == self._size else []

    def feed(self, data: bytes | bytearray) -> list[memoryview]:
        """Process bytes received elsewhere; returns the completed frames, in order."""
        head, self._head = self._head, _NO_HEAD
        return self._cut(head + data, len(head) + len(data))

    def _cut(self, data: bytearray, count: int, position: int = 0) -> list[memoryview]:
        frames: list[memoryview] = []
        if self._size:
            position = self._fill(data, count)
            if self._filled < self._size:
                return frames
            frames.append(self._complete())
        while count - position >= _SIZE_BYTES:
            [size] = _SIZE.unpack_from(data, position)
            begin = position + _SIZE_BYTES
            if self._is_first or not 0 <= size <= self._max_bytes:
                self._check(data[position:begin], size, frames)
            if begin + size > count:
                if size > self._small:
                    self._begin(size, data[begin:count])
                    return frames
                break
            frames.append(memoryview(data[begin : begin + size]))
            position = begin + size
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
        """Add data to the current frame; returns how much of it was used."""
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
            raise BrokenFrame(f"invalid frame size {size}", complete)
        if size > self._max_bytes:
            raise BrokenFrame(f"frame size {size} exceeds the maximum of {self._max_bytes}", complete)
