"""Memory for large reads, used again and again.

Fresh memory for each would cost several times the read itself: the allocator gives that much back to the system as
soon as it is free, and every page of it has to be faulted in and cleared again.
"""

from __future__ import annotations

import os
from mmap import mmap
from sys import getrefcount
from typing import Final

_SMALLEST: Final = 128 * 1024
"""Below this the allocator keeps what is freed, and fresh memory is as good."""
BUFFER_BYTES: Final = (1 << 20) + 64 * 1024
"""What Kafka's consumers ask of a partition by default, and something for the way there from the index."""
_MOST_BUFFERS: Final = 8
# Those of the list, of the variable that holds it, and of the call that counts.
_REFERENCES_WHEN_FREE: Final = 3


class ReadBuffers:
    def __init__(self) -> None:
        self._buffers: list[mmap] = []

    def read(self, fd: int, size: int, position: int) -> bytes | memoryview:
        """What `pread` would return. It stays as it is for as long as somebody holds it, or a part of it."""
        buffer = self._free_buffer() if _SMALLEST <= size <= BUFFER_BYTES else None
        if buffer is None:
            return os.pread(fd, size, position)
        view = memoryview(buffer)
        return view[: os.preadv(fd, [view[:size]], position)].toreadonly()

    def _free_buffer(self) -> mmap | None:
        # Whoever holds a view of a buffer, the event loop that still sends it say, holds a reference to it.
        for buffer in self._buffers:
            if getrefcount(buffer) == _REFERENCES_WHEN_FREE:
                return buffer
        if len(self._buffers) == _MOST_BUFFERS:
            return None
        # At the start of a page: a batch may begin at one in the file, and copying between places that differ by a few
        # bytes within their pages takes a third longer.
        self._buffers.append(mmap(-1, BUFFER_BYTES))
        return self._buffers[-1]
