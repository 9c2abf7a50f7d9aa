"""One part, being written."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ottla.queue.errors import FailWrite
from ottla.queue.files import failing_as, open_to_write, sync, sync_folder, write_at
from ottla.queue.folder import create_folder
from ottla.queue.info_files import PartInfo, push_line
from ottla.queue.record import encode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.queue.folder import QueueFolder


class PartWriter:
    def __init__(self, folder: QueueFolder, part: int, began_s: float, *, is_durable: bool) -> None:
        """Begin this part, of which nothing is there yet."""
        self.part = part
        self.began_s = began_s
        self.right_edge = 0
        self.count_pushed = 0
        self.count_synced = 0
        self.published = PartInfo(0, 0)
        """What readers are told of it."""
        self._path = folder.part(part)
        self._name = folder.name.encode()
        create_folder(self._path)
        self._data_fd = open_to_write(folder.data(part))
        try:
            self._info_fd = open_to_write(folder.info_push(part))
        except BaseException:
            os.close(self._data_fd)
            raise
        try:
            self.publish(self.published)
            if is_durable:
                self.sync_all()
        except BaseException:
            self.close()
            raise

    def append(self, kind: int, body: bytes) -> None:
        """Write one message, which readers do not know of yet."""
        number = self.count_pushed + 1
        record = encode(self.right_edge, number, kind, body)
        self._write(record, number)

    def append_many(self, messages: Iterable[tuple[int, bytes]]) -> None:
        """Write all of them, or none."""
        records = []
        offset, number = self.right_edge, self.count_pushed
        for kind, body in messages:
            number += 1
            record = encode(offset, number, kind, body)
            offset += len(record)
            records.append(record)
        self._write(b"".join(records), number)

    def _write(self, data: bytes, count: int) -> None:
        try:
            # At the right edge, not at the end of the file: what a failed write left there is covered.
            write_at(self._data_fd, data, self.right_edge)
        except OSError as refused:
            self.roll_back(PartInfo(self.right_edge, self.count_pushed))
            raise FailWrite(f"{self._path} cannot be written: {refused.strerror or refused}") from refused
        self.right_edge += len(data)
        self.count_pushed = count

    def roll_back(self, end: PartInfo) -> None:
        """Forget what was written behind this."""
        self.right_edge, self.count_pushed = end
        # If this fails too, the next message covers it.
        with suppress(OSError):
            os.ftruncate(self._data_fd, self.right_edge)

    def publish(self, info: PartInfo) -> None:
        """Tell readers that the part is written so far. One small write in place: they see this line or the last."""
        with failing_as(FailWrite, f"{self._path} cannot be written"):
            write_at(self._info_fd, push_line(self._name, *info), 0)
        self.published = info

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
