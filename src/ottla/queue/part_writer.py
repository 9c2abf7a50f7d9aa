"""One part, being written."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ottla.queue.errors import FailWrite
from ottla.queue.files import failing_as, open_to_write, sync, sync_folder, write_at
from ottla.queue.folder import create_folder
from ottla.queue.info_files import push_line
from ottla.queue.record import encode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.queue.folder import QueueFolder


class PartWriter:
    def __init__(self, folder: QueueFolder, part: int, ends_s: float, *, is_durable: bool) -> None:
        """Begin this part, of which nothing is there yet."""
        self.part = part
        self.ends_s = ends_s
        """When it is too old to be written to."""
        self.right_edge = 0
        self.count_pushed = 0
        self.count_synced = 0
        self._published = (0, 0)
        self._path = folder.part(part)
        self._name = folder.name.encode()
        self._seal = folder.seal
        create_folder(self._path)
        self._data_fd = open_to_write(folder.data(part))
        try:
            self._info_fd = open_to_write(folder.info_push(part))
        except BaseException:
            os.close(self._data_fd)
            raise
        try:
            self.publish()
            if is_durable:
                self.sync_all()
        except BaseException:
            self.close()
            raise

    def append(self, kind: int, body: bytes) -> None:
        """Write one message, which readers do not know of yet."""
        number = self.count_pushed + 1
        self._write(self._record(self.right_edge, number, kind, body), number)

    def append_and_publish(self, kind: int, body: bytes) -> None:
        """Both in one, with fewer calls: every push that does not wait for the disk passes here."""
        edge, number = self.right_edge, self.count_pushed + 1
        record = self._record(edge, number, kind, body)
        next_edge = edge + len(record)
        line = push_line(self._name, next_edge, number)
        try:
            write_at(self._data_fd, record, edge)
            write_at(self._info_fd, line, 0)
        except OSError as refused:
            self._roll_back(edge, number - 1)
            raise FailWrite(f"{self._path} cannot be written: {refused.strerror or refused}") from refused
        self.right_edge, self.count_pushed = next_edge, number
        self._published = next_edge, number

    def append_many(self, messages: Iterable[tuple[int, bytes]]) -> None:
        """Write all of them, or none."""
        records = []
        offset, number = self.right_edge, self.count_pushed
        for kind, body in messages:
            number += 1
            record = self._record(offset, number, kind, body)
            offset += len(record)
            records.append(record)
        self._write(b"".join(records), number)

    def _record(self, offset: int, number: int, kind: int, body: bytes) -> bytes:
        if self._seal is not None:
            kind, body = self._seal.seal(kind, body, (self.part, offset, number))
        return encode(offset, number, kind, body)

    def _write(self, data: bytes, count: int) -> None:
        try:
            # At the right edge, not at the end of the file: what a failed write left there is covered.
            write_at(self._data_fd, data, self.right_edge)
        except OSError as refused:
            self._roll_back(self.right_edge, self.count_pushed)
            raise FailWrite(f"{self._path} cannot be written: {refused.strerror or refused}") from refused
        self.right_edge += len(data)
        self.count_pushed = count

    def _roll_back(self, right_edge: int, count_pushed: int) -> None:
        """Forget what was written behind this."""
        self.right_edge, self.count_pushed = right_edge, count_pushed
        # If this fails too, the next message covers it.
        with suppress(OSError):
            os.ftruncate(self._data_fd, right_edge)

    def publish(self) -> None:
        """Tell readers of all that was appended; if that fails, it is as if it never was."""
        try:
            self.publish_to(self.right_edge, self.count_pushed)
        except FailWrite:
            self._roll_back(*self._published)
            raise

    def publish_to(self, right_edge: int, count_pushed: int) -> None:
        """Tell readers that the part is written so far. One small write in place: they see this line or the last."""
        try:
            write_at(self._info_fd, push_line(self._name, right_edge, count_pushed), 0)
        except OSError as refused:
            raise FailWrite(f"{self._path} cannot be written: {refused.strerror or refused}") from refused
        self._published = right_edge, count_pushed

    def sync(self) -> None:
        with failing_as(FailWrite, f"{self._path} cannot be synced"):
            sync(self._data_fd)

    def sync_all(self) -> None:
        """The info file and the folder, too."""
        self.sync()
        with failing_as(FailWrite, f"{self._path} cannot be synced"):
            sync(self._info_fd)
        sync_folder(self._path)

    def close(self) -> None:
        os.close(self._data_fd)
        os.close(self._info_fd)
