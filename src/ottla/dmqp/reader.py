"""The messages of a shard in their order, from its cursor on, a few of them read ahead."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from ottla.dmqp.sequences import sequence_of
from ottla.dmqp.shard_log import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.fetched import Piece
    from ottla.dmqp.shard_log import ShardLog
    from ottla.records.reader import Record


class Entry(NamedTuple):
    offset: int
    sequence: int
    payload: bytes


class Reader:
    def __init__(self, log: ShardLog, cursor: Cursor) -> None:
        self._log = log
        self.rewind(cursor)

    def rewind(self, cursor: Cursor) -> None:
        """What has been taken since then was not taken after all."""
        self.cursor = cursor
        self._read_until = cursor.offset
        self._pieces: Iterator[Piece] = iter(())
        self._ahead: deque[Record] = deque()

    async def head(self) -> Entry | None:
        """The next message, which stays the next one."""
        start = self._log.start
        while self._ahead and self._ahead[0].offset < start:
            # Deleted before anybody took it.
            self._ahead.popleft()
        while not self._ahead:
            if not await self._read_on(start):
                return None
        record = self._ahead[0]
        sequence = sequence_of(record)
        # What a Kafka client wrote has no number; it comes right after the message before it.
        return Entry(record.offset, self.cursor.sequence if sequence is None else sequence, record.value or b"")

    def take(self, entry: Entry) -> None:
        """The head is taken."""
        self._ahead.popleft()
        self.cursor = Cursor(entry.offset + 1, entry.sequence)

    async def _read_on(self, start: int) -> bool:
        """Whether there is more."""
        piece = next(self._pieces, None)
        if piece is None:
            self._read_until = max(self._read_until, start)
            self._pieces = await self._log.read(self._read_until)
            piece = next(self._pieces, None)
        if piece is None:
            return False
        self._ahead.extend(record for record in piece.records if record.offset >= start)
        self._read_until = piece.next_offset
        return True
