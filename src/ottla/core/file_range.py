"""A range of a file that is sent with `sendfile`, without being read into memory."""

from __future__ import annotations

import os
import sys
from typing import ClassVar, Final

CAN_SEND: Final = sys.platform == "linux"
"""Elsewhere `sendfile` differs in its arguments and in what it returns."""


class FileRange:
    """It owns a descriptor: the file may be closed or removed before the range is sent."""

    __slots__ = ("_fd", "_position", "_size")

    count: ClassVar = 0
    """The number of ranges that exist."""

    def __init__(self, fd: int, position: int, size: int) -> None:
        self._fd = -1  # in case there is no descriptor left
        self._fd = os.dup(fd)
        FileRange.count += 1
        self._position = position
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        data = os.pread(self._fd, self._size, self._position)
        if len(data) < self._size:
            raise _too_short(len(data), self._size)
        return data

    def send(self, socket: int, start: int) -> int:
        """Send bytes from `start` on; returns how many. Raises BlockingIOError if the socket takes none."""
        sent = os.sendfile(socket, self._fd, self._position + start, self._size - start)
        if sent == 0:
            raise _too_short(start, self._size)
        return sent

    def __del__(self) -> None:
        if self._fd >= 0:
            FileRange.count -= 1
            os.close(self._fd)


def _too_short(size: int, expected: int) -> OSError:
    return OSError(f"the file was truncated: {size} of {expected} bytes are left")
