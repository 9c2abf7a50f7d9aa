"""Memory for large reads, used again and again.

Fresh memory for each would cost several times the read itself: the allocator gives that much back to the system as
soon as it is free, and every page of it has to be faulted in and cleared again.
"""

from __future__ import annotations

import os
import sys
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Final

_SMALLEST: Final = 128 * 1024
"""Below this the allocator keeps what is freed, and fresh memory is as good."""
BUFFER_BYTES: Final = (1 << 20) + 64 * 1024
"""What Kafka's consumers ask of a partition by default, and something for the way there from the index."""
_MOST_BUFFERS: Final = 8
_CAN_TELL_WHAT_IS_FREE: Final = sys.platform == "linux"


class ReadBuffers:
    def __init__(self) -> None:
        # Mappings, because they begin with a page: so may a batch in its file, and copying between places that differ
        # by a few bytes within their pages takes a third longer.
        self._buffers: list[mmap] = []

    def read(self, fd: int, size: int, position: int) -> bytes | memoryview:
        """What `pread` would return. It stays as it is for as long as somebody holds it, or a part of it."""
        buffer = self._buffer_for(size)
        if buffer is None:
            return os.pread(fd, size, position)
        view = memoryview(buffer)
        return view[: os.preadv(fd, [view[:size]], position)].toreadonly()

    def empty(self, size: int) -> memoryview:
        """Memory to be written to, whatever is in it; nobody else gets it as long as somebody holds it."""
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
    """Whether nobody holds a view of it, such as the event loop while it sends."""
    try:
        # To the size it has: nothing happens, except that it is refused while there is a view.
        buffer.resize(BUFFER_BYTES)
    except BufferError:
        return False
    return True
