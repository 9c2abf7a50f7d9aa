"""Writes one part; contains the hot path of a push.

Compiled by Cython if a C compiler is available, otherwise run as plain Python.
"""

from __future__ import annotations

import os
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from ottla.queue import files
from ottla.queue.errors import FailWrite
from ottla.queue.files import failing_as, open_to_write, sync, sync_folder, write_at
from ottla.queue.folder import create_folder
from ottla.queue.record import HEADER_BYTES, MAX_NUMBER

try:
    import cython
except ImportError:
    from ottla.records.uncompiled import cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.ottla.queue.encode import body_of, encode, kind_of, push_line
    from cython.cimports.posix.unistd import pwrite
else:
    from ottla.queue.encode import body_of, encode, kind_of, push_line

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable

    from ottla.queue.folder import QueueFolder

IS_COMPILED = cython.compiled

_HEADER_BYTES = cython.declare(cython.longlong, HEADER_BYTES)
_MAX_NUMBER = cython.declare(cython.longlong, MAX_NUMBER)


class Limits(NamedTuple):
    """Of a part."""

    bytes: int
    ends_s: float
    """When to roll by age."""
    unsynced_messages: float
    """After this many messages a push waits for a sync."""


@cython.final
@cython.cclass
class PartWriter:
    """Methods are called with the lock held, except `offer` and those that wait for the disk."""

    part = cython.declare(cython.longlong, visibility="readonly")
    right_edge = cython.declare(cython.longlong, visibility="readonly")
    count_pushed = cython.declare(cython.longlong, visibility="public")
    count_synced = cython.declare(cython.longlong, visibility="public")
    is_ended = cython.declare(cython.bint, visibility="public")
    _max_bytes = cython.declare(cython.longlong)
    _ends_s = cython.declare(cython.double)
    _unsynced_messages = cython.declare(cython.double)
    _monotonic_s = cython.declare(object)
    _acquire = cython.declare(object)
    _release = cython.declare(object)
    _published_edge = cython.declare(cython.longlong)
    _published_count = cython.declare(cython.longlong)
    _path = cython.declare(object)
    _name = cython.declare(bytes)
    _seal = cython.declare(object)
    _extra_bytes = cython.declare(cython.longlong)
    _data_fd = cython.declare(cython.int)
    _info_fd = cython.declare(cython.int)
    _is_direct = cython.declare(cython.bint)

    def __init__(
        self, folder: QueueFolder, part: int, lock: threading.Lock, limits: Limits, monotonic_s: Callable[[], float]
    ) -> None:
        """Create this part."""
        self.part = part
        self.right_edge = 0
        self.count_pushed = 0
        self.count_synced = 0
        self.is_ended = False
        self._max_bytes = limits.bytes
        self._ends_s = limits.ends_s
        self._unsynced_messages = limits.unsynced_messages
        self._monotonic_s = monotonic_s
        self._acquire = lock.acquire
        self._release = lock.release
        self._published_edge = 0
        self._published_count = 0
        self._path = folder.part(part)
        self._name = folder.name.encode()
        self._seal = folder.seal
        self._extra_bytes = folder.extra_bytes
        # Not available on Windows; tests inspect the writes.
        self._is_direct = cython.compiled and files.write_some is getattr(os, "pwrite", None)
        create_folder(self._path)
        self._data_fd = open_to_write(folder.data(part))
        try:
            self._info_fd = open_to_write(folder.info_push(part))
        except BaseException:
            os.close(self._data_fd)
            raise
        try:
            self.publish()
        except BaseException:
            self.close()
            raise

    def offer(self, message: bytes | str) -> int:
        """Write one message and publish it, in the simple case; returns the new right edge.

        Returns 0, without writing, if the part is full or has ended, or a sync is required. Thread-safe.
        """
        body: bytes = body_of(message, self._extra_bytes)
        self._acquire()  # half the time of a with statement
        try:
            if self.is_ended or self.count_pushed + 1 - self.count_synced >= self._unsynced_messages:
                return 0
            if not self.has_room(_HEADER_BYTES + len(body) + self._extra_bytes, 1):
                return 0
            return self._append(kind_of(message), body, is_published=True)
        finally:
            self._release()

    def append(self, kind: int, body: bytes, *, is_published: bool) -> int:
        """Write one message, and publish it or not yet; returns the new right edge."""
        return self._append(kind, body, is_published)

    @cython.cfunc
    def _append(self, kind: cython.uchar, body: bytes, is_published: cython.bint) -> cython.longlong:
        edge: cython.longlong = self.right_edge
        number: cython.longlong = self.count_pushed + 1
        record: bytes = self._record(edge, number, kind, body)
        next_edge: cython.longlong = edge + len(record)
        try:
            # At the right edge, not at the end of the file: remains of a failed write are overwritten.
            self._write(self._data_fd, record, edge)
            if is_published:
                self._write(self._info_fd, push_line(self._name, next_edge, number), 0)
                self._published_edge = next_edge
                self._published_count = number
        except OSError as refused:
            self._roll_back(edge, number - 1)
            raise FailWrite(f"{self._path} cannot be written: {refused.strerror or refused}") from refused
        self.right_edge = next_edge
        self.count_pushed = number
        return next_edge

    def append_many(self, messages: Iterable[tuple[int, bytes]]) -> None:
        """Write all of them, unpublished, or none."""
        records: list[bytes] = []
        record: bytes
        offset: cython.longlong = self.right_edge
        number: cython.longlong = self.count_pushed
        for kind, body in messages:
            number += 1
            record = self._record(offset, number, kind, body)
            offset += len(record)
            records.append(record)
        try:
            self._write(self._data_fd, b"".join(records), self.right_edge)
        except OSError as refused:
            self._roll_back(self.right_edge, self.count_pushed)
            raise FailWrite(f"{self._path} cannot be written: {refused.strerror or refused}") from refused
        self.right_edge = offset
        self.count_pushed = number

    @cython.ccall
    @cython.exceptval(-1)
    def has_room(self, size: cython.longlong, count: cython.longlong) -> cython.bint:
        """Whether these bytes and messages fit. An empty part accepts any message."""
        if self.count_pushed == 0:
            return True
        if self.right_edge + size > self._max_bytes or self.count_pushed + count > _MAX_NUMBER:
            return False
        return self._ends_s == inf or self._monotonic_s() < self._ends_s

    @cython.cfunc
    @cython.exceptval(check=True)
    def _write(self, fd: cython.int, data: bytes, offset: cython.longlong) -> cython.void:
        if cython.compiled:
            size: cython.Py_ssize_t = len(data)
            written: cython.Py_ssize_t = 0
            if self._is_direct:
                start: cython.p_char = PyBytes_AS_STRING(data)
                with cython.nogil:
                    written = pwrite(fd, start, size, offset)
            if written == size:
                return
            # Interrupted, failed or short: retry with full error handling.
        write_at(fd, data, offset)

    @cython.cfunc
    def _record(self, offset: cython.longlong, number: cython.longlong, kind: cython.uchar, body: bytes) -> bytes:
        if self._seal is not None:
            kind, body = self._seal.seal(kind, body, (self.part, offset, number))
        return encode(offset, number, kind, body)

    def _roll_back(self, right_edge: int, count_pushed: int) -> None:
        """Discard everything behind this."""
        self.right_edge = right_edge
        self.count_pushed = count_pushed
        # If this fails too, the next message overwrites it.
        with suppress(OSError):
            os.ftruncate(self._data_fd, right_edge)

    def publish(self) -> None:
        """Publish all appended messages; if that fails, discard them."""
        try:
            self.publish_to(self.right_edge, self.count_pushed)
        except FailWrite:
            self._roll_back(self._published_edge, self._published_count)
            raise

    def publish_to(self, right_edge: int, count_pushed: int) -> None:
        """Publish the right edge. One small write in place: readers see this line or the previous one."""
        try:
            self._write(self._info_fd, push_line(self._name, right_edge, count_pushed), 0)
        except OSError as refused:
            raise FailWrite(f"{self._path} cannot be written: {refused.strerror or refused}") from refused
        self._published_edge = right_edge
        self._published_count = count_pushed

    def sync(self) -> None:
        with failing_as(FailWrite, f"{self._path} cannot be synced"):
            sync(self._data_fd)

    def sync_all(self) -> None:
        """Including the info file and the folder."""
        self.sync()
        with failing_as(FailWrite, f"{self._path} cannot be synced"):
            sync(self._info_fd)
        sync_folder(self._path)

    def close(self) -> None:
        self.is_ended = True
        os.close(self._data_fd)
        os.close(self._info_fd)
