"""Reads the messages of a shard in order, from its cursor on, with read-ahead.

A delayed message is skipped, and delivered before all others once it is due.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.batches.delays import due_ms
from ottla.dmqp.sequences import sequence_of
from ottla.dmqp.shard_log import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.interfaces.fetched import Piece
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
        """Undo the pops since that position."""
        self.cursor = cursor
        self._read_until = cursor.offset
        self._pieces: Iterator[Piece] = iter(())
        self._ahead: deque[Record] = deque()
        self._dues: list[tuple[int, int]] | None = None if cursor.left_behind else []
        """When each skipped message is due, earliest first; None until looked up."""

    async def head(self) -> Entry | None:
        """The next message, without popping it."""
        start = self._log.start
        now_ms = self._log.now_ms()
        record = await self._due(start, now_ms) or await self._next(start, now_ms)
        if record is None:
            return None
        sequence = sequence_of(record)
        # A message of a Kafka client has no sequence id; it follows the message before it.
        return Entry(record.offset, self.cursor.sequence if sequence is None else sequence, record.value or b"")

    def take(self, entry: Entry) -> None:
        """Pop the head."""
        offset, sequence, left_behind = self.cursor
        if entry.offset < offset:
            assert self._dues  # noqa: S101 - for mypy: it was the head
            heappop(self._dues)
            self.cursor = Cursor(offset, sequence, left_behind.without(entry.offset))
        else:
            self._ahead.popleft()
            self.cursor = Cursor(entry.offset + 1, entry.sequence, left_behind)

    # Skipped messages

    async def _due(self, start: int, now_ms: int) -> Record | None:
        if self._dues is None:
            self._dues = await self._looked_up(start)
        while self._dues and (self._dues[0][0] <= now_ms or self._dues[0][1] < start):
            offset = self._dues[0][1]
            record = await self._record_at(offset) if offset >= start else None
            if record is not None:
                return record
            # Deleted before it was popped.
            heappop(self._dues)
            self.cursor = self.cursor._replace(left_behind=self.cursor.left_behind.without(offset))
        return None

    async def _looked_up(self, start: int) -> list[tuple[int, int]]:
        dues = []
        wanted = set(self.cursor.left_behind.since(start))
        while wanted:
            first = min(wanted)
            before = len(wanted)
            for piece in await self._log.read(first):
                dues += [(due_ms(record.headers), record.offset) for record in piece.records if record.offset in wanted]
                # Missing messages, e.g. after compaction, are not waited for.
                wanted = {offset for offset in wanted if offset >= piece.next_offset}
            if len(wanted) == before:
                break
        heapify(dues)
        return dues

    async def _record_at(self, offset: int) -> Record | None:
        for piece in await self._log.read(offset):
            for record in piece.records:
                if record.offset == offset:
                    return record
        return None

    # Next messages

    async def _next(self, start: int, now_ms: int) -> Record | None:
        while True:
            while self._ahead and self._ahead[0].offset < start:
                # Deleted before it was popped.
                self._ahead.popleft()
            while not self._ahead:
                if not await self._read_on(start):
                    return None
            record = self._ahead[0]
            due = due_ms(record.headers) if record.headers else 0
            if due <= now_ms:
                return record
            if not self._leave_behind(record.offset, due):
                return None

    def _leave_behind(self, offset: int, due: int) -> bool:
        """Skip a delayed message. Returns False if there is no space for more: then all messages have to wait."""
        grown = self.cursor.left_behind.with_next(offset)
        if grown is None or self._dues is None:
            return False
        self._ahead.popleft()
        heappush(self._dues, (due, offset))
        self.cursor = Cursor(offset + 1, self.cursor.sequence, grown)
        return True

    async def _read_on(self, start: int) -> bool:
        """Read further records. Returns whether there are more."""
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
