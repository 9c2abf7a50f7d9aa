"""Reusable buffers for large reads.

Newly allocated memory would cost several times the read: the allocator returns large blocks to the system when they are
freed, and every page has to be faulted in and zeroed again.
"""

from __future__ import annotations

import os
import sys
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Final

_SMALLEST: Final = 128 * 1024
"""Below this size the allocator keeps freed memory, and allocating is as fast."""
BUFFER_BYTES: Final = (1 << 20) + 64 * 1024
"""The default fetch size of Kafka's consumers per partition, plus the distance from the index entry."""
_MOST_BUFFERS: Final = 8
_CAN_TELL_WHAT_IS_FREE: Final = sys.platform == "linux"


class ReadBuffers:
    def __init__(self) -> None:
        # Mappings are page-aligned, as a batch in its file may be; copying between differently aligned addresses takes
        # a third longer.
        self._buffers: list[mmap] = []

    def join(self, other: ReadBuffers) -> None:
        """Use the buffers of another pool from now on."""
        self._buffers = other._buffers

    def read(self, fd: int, size: int, position: int) -> bytes | memoryview:
        """Like `pread`. The buffer is not reused while it, or a slice of it, is referenced."""
        buffer = self._buffer_for(size)
        if buffer is None:
            return os.pread(fd, size, position)
        view = memoryview(buffer)
        return view[: os.preadv(fd, [view[:size]], position)].toreadonly()

    def empty(self, size: int) -> memoryview:
        """A writable buffer with arbitrary contents; exclusive while it is referenced."""
        return memoryview(self._buffer_for(size) or bytearray(size))[:size]

    def _buffer_for(self, size: int) -> mmap | None:
        return self._free_buffer() if _SMALLEST <= size <= BUFFER_BYTES and _CAN_TELL_WHAT_IS_FREE else None

    def _free_buffer(self) -> mmap | None:
        for buffer in self._buffers:
            if _is_free(buffer):
                return buffer
        if len(self._buffers) == _MOST_BUFFERS:
            return None
        self._buffers.append(mmap(-1, BUFFER_BYTES, MAP_PRIVATE | MAP_ANONYMOUS))
        return self._buffers[-1]


def _is_free(buffer: mmap) -> bool:
    """Whether no view of the buffer is referenced, for example by the event loop while sending."""
    try:
        # Resizing to the same size has no effect, except that it fails while a view exists.
        buffer.resize(BUFFER_BYTES)
    except BufferError:
        return False
    return True
