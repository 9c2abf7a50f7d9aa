"""Combines small writes: a system call costs more than the rest of a small response."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_BYTES: Final = 64 * 1024


class JoinedWrites(asyncio.Transport):
    """A transport that collects the writes of one loop iteration, such as headers and body.

    If they exceed a buffer, they are written at once, so that flow control works for long responses.
    """

    def __init__(self, transport: asyncio.Transport, call_soon: Callable[[Callable[[], None]], object]) -> None:
        super().__init__()
        self._transport = transport
        self._call_soon = call_soon
        self._pending: list[bytes] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if not self._pending:
            self._call_soon(self._flush)
        self._pending.append(bytes(data))
        self._size += len(data)
        if self._size >= _MOST_BYTES:
            self._flush()

    def _flush(self) -> None:
        pending, self._pending, self._size = self._pending, [], 0
        if pending and not self._transport.is_closing():
            self._transport.write(b"".join(pending))

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        self._pending, self._size = [], 0
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._transport.get_extra_info(name, default)
