"""One shard as served over DMQP. Requests made during an append or commit share the next one.

POP removes a message permanently: the cursor is committed before the reply is sent, so the message is not delivered
again. If the reply is lost, so is the message.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import ApiError, ErrorCode
from ottla.dmqp.frame import MAX_PAYLOAD_BYTES, Status, reply
from ottla.dmqp.reader import Reader
from ottla.dmqp.sequences import header_of
from ottla.records.encode import BatchBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ottla.dmqp.frame import Frame
    from ottla.dmqp.sequences import Counter
    from ottla.dmqp.shard_log import Cursor, ShardLog

_logger: Final = logging.getLogger(__name__)

_NOT_APPENDED: Final = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Errors after which the records are not in the log, whichever node leads.

Not NOT_LEADER_OR_FOLLOWER: a leader also answers it if it lost its leadership while it waited for the ISR.
"""

Replies = asyncio.Future[list[bytes]]


class _Pushes(NamedTuple):
    """Consecutive requests of one connection."""

    requests: Sequence[Frame]
    replies: Replies


class _Reads(NamedTuple):
    how_many: int
    takes: bool
    replies: Replies


class Shard:
    def __init__(self, log: ShardLog, counter: Counter, cursor: Cursor) -> None:
        self.log = log
        self.is_closed = False
        """Whether it takes no more connections: one may be accepted while its port is closed."""
        self._counter = counter
        self._reader = Reader(log, cursor)
        self._committed = cursor
        self._pushes: list[_Pushes] = []
        self._pushing: asyncio.Task[None] | None = None
        self._reads: list[_Reads] = []
        self._reading: asyncio.Task[None] | None = None

    # Called by connections: each gets the replies to its requests, in order

    def push(self, requests: Sequence[Frame]) -> Replies:
        loop = asyncio.get_running_loop()
        asked = _Pushes(requests, loop.create_future())
        self._pushes.append(asked)
        if self._pushing is None:
            self._pushing = loop.create_task(self._push_all())
        return asked.replies

    def pop(self, count: int) -> Replies:
        """At least one reply, and at most `count`: as many as fit into one response."""
        return self._read(_Reads(how_many=count, takes=True, replies=asyncio.get_running_loop().create_future()))

    def peek(self, count: int) -> Replies:
        return self._read(_Reads(how_many=count, takes=False, replies=asyncio.get_running_loop().create_future()))

    def _read(self, asked: _Reads) -> Replies:
        self._reads.append(asked)
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read_all())
        return asked.replies

    async def stop(self) -> None:
        """Finish requests in progress."""
        await asyncio.gather(*(task for task in (self._pushing, self._reading) if task is not None))

    # PUSH

    async def _push_all(self) -> None:
        try:
            while self._pushes:
                asked, self._pushes = self._pushes, []
                with _telling([one.replies for one in asked]):
                    batch = _PushBatch(self.log, self._counter)
                    answers = [[await batch.add(request) for request in one.requests] for one in asked]
                    await batch.append()
                    for one, slots in zip(asked, answers, strict=True):
                        _answer(one.replies, [slot.reply() for slot in slots])
        finally:
            self._pushing = None

    # POP and PEEK_SEQUENCE_ID

    async def _read_all(self) -> None:
        try:
            while self._reads:
                asked, self._reads = self._reads, []
                with _telling([one.replies for one in asked]):
                    answers = [await self._given(one) for one in asked]
                    is_safe = await self._commit()
                    for one, replies in zip(asked, answers, strict=True):
                        _answer(
                            one.replies, replies if is_safe or not one.takes else [reply(Status.EIO)] * one.how_many
                        )
        finally:
            self._reading = None

    async def _given(self, asked: _Reads) -> list[bytes]:
        replies: list[bytes] = []
        size = 0
        while len(replies) < asked.how_many and size <= MAX_PAYLOAD_BYTES:
            try:
                entry = await self._reader.head()
            except ApiError as refused:
                _logger.error("%s-%d: read for DMQP failed: %s", self.log.topic, self.log.shard, refused)
                return replies + [reply(Status.EIO)] * (asked.how_many - len(replies))
            if entry is None:
                return replies + [reply(Status.ENODATA)] * (asked.how_many - len(replies))
            if not asked.takes:
                return [reply(Status.OK, entry.sequence)] * asked.how_many
            self._reader.take(entry)
            if len(entry.payload) > MAX_PAYLOAD_BYTES:
                # The record stays in the log for Kafka clients; here it would block all others.
                replies.append(reply(Status.EMSGSIZE, entry.sequence))
            else:
                replies.append(reply(Status.OK, entry.sequence, entry.payload))
            size += len(replies[-1])
        return replies

    async def _commit(self) -> bool:
        """Commit the pops. Returns whether that succeeded; if not, the messages are available again."""
        cursor = self._reader.cursor
        if cursor == self._committed:
            return True
        try:
            await self.log.commit(cursor)
        except ApiError as refused:
            _logger.error("%s-%d: could not commit the DMQP cursor: %s", self.log.topic, self.log.shard, refused)
            self._reader.rewind(self._committed)
            return False
        self._committed = cursor
        return True


class _Slot:
    """The outcome of one PUSH."""

    __slots__ = ("sequence", "status")

    def __init__(self, status: Status, sequence: int = 0) -> None:
        self.status = status
        self.sequence = sequence

    def reply(self) -> bytes:
        return reply(self.status, self.sequence if self.status is Status.OK else 0)


class _PushBatch:
    """Collects pushes into record batches up to the topic's limit."""

    def __init__(self, log: ShardLog, counter: Counter) -> None:
        self._log = log
        self._counter = counter
        self._now_ms = log.now_ms()
        self._builder: BatchBuilder | None = None
        self._slots: list[_Slot] = []

    async def add(self, request: Frame) -> _Slot:
        if not self._counter.allows(request.sequence_id):
            return _Slot(Status.EINVAL)
        slot = _Slot(Status.OK, self._counter.next)
        fields = (self._now_ms, None, request.payload, header_of(slot.sequence))
        if self._builder is not None and not self._builder.append(*fields):
            await self.append()
            return await self.add(request)
        if self._builder is None:
            self._builder = BatchBuilder(max_bytes=self._log.max_batch_bytes)
            self._builder.append(*fields)
        self._counter.take()
        self._slots.append(slot)
        return slot

    async def append(self) -> None:
        builder, self._builder = self._builder, None
        slots, self._slots = self._slots, []
        if builder is None:
            return
        end = self._log.log_end
        try:
            await self._log.append(builder)
        except ApiError as refused:
            _logger.error("%s-%d: DMQP push failed: %s", self._log.topic, self._log.shard, refused)
            # After a timeout or a failed sync, the records may be in the log: then their numbers are used.
            if refused.code in _NOT_APPENDED or (end is not None and end == self._log.log_end):
                self._log.not_appended()
                self._counter.give_back(slots[0].sequence, len(slots))
            is_too_large = refused.code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
            for slot in slots:
                slot.status = Status.EMSGSIZE if is_too_large else Status.EIO


@contextmanager
def _telling(waiting: Sequence[Replies]) -> Iterator[None]:
    """Raises a bug to the waiting requests, which closes their connections."""
    try:
        yield
    except Exception as bug:  # noqa: BLE001 - raised again where it is awaited
        for replies in waiting:
            if not replies.done():
                replies.set_exception(bug)


def _answer(replies: Replies, answers: list[bytes]) -> None:
    # The client may be gone.
    if not replies.done():
        replies.set_result(answers)
