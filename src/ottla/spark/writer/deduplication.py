"""Finds rows of a task that an interrupted attempt already wrote.

Usually nothing is searched. A consumer group of the sink has marks: after each micro-batch, the end offsets of its
topics and the run of the query. The first micro-batch of a run, and a task's second attempt, read the topics from the
mark on and search for their own records. If a topic has no mark, each task sets one before it writes there for the
first time.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa

from ottla.client.admin.offsets import CommittedOffset
from ottla.client.errors import BrokerError
from ottla.client.producer.batch import Identity
from ottla.core.ids import TopicPartition
from ottla.records.arrow import to_arrow
from ottla.records.batch import read_header
from ottla.spark.errors import SinkError
from ottla.spark.reader.leaders import fetch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ottla.client.admin.admin import Admin
    from ottla.client.client import Client
    from ottla.spark.writer.attempts import Attempt

_Marks = dict[TopicPartition, CommittedOffset]
_UNLIMITED: Final = (1 << 63) - 1


class BatchMark(msgspec.Struct, frozen=True):
    """Metadata of an offset in the group: the run and the micro-batch after which the topic ended there."""

    run: str
    batch: int


class EarlierRows:
    """Rows that are already in the topics; each matches once."""

    def __init__(self) -> None:
        self.highest_epoch: int | None = None
        self._rows: Counter[bytes] = Counter()

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, topic: str, rows: pa.RecordBatch) -> None:
        self._rows.update(_digests(topic, rows))

    def take(self, topic: str, rows: pa.RecordBatch) -> list[bool]:
        """Whether each row still has to be written."""
        return [not self._take_one(digest) for digest in _digests(topic, rows)]

    def _take_one(self, digest: bytes) -> bool:
        if self._rows[digest] <= 0:
            del self._rows[digest]
            return False
        self._rows[digest] -= 1
        return True


class TaskDeduplication:
    """Finds rows that earlier attempts wrote; a `Signature` of ottla.spark.writer.sending."""

    transactional_id: str | None = None

    def __init__(self, client: Client, attempt: Attempt, *, is_on: bool) -> None:
        self._client = client
        self._is_on = is_on
        self._attempt = attempt
        self._marks: _Marks | None = None
        self._done_topics: set[str] = set()
        self._identities: dict[str, Identity] = {}
        self._earlier = EarlierRows()
        self._may_be_repeated = False
        self.has_task_group = False

    async def meet(self, topic: str) -> None:
        """Find this task's rows that are already in the topic."""
        if await self._is_done(topic):
            self._done_topics.add(topic)
        # Final: sequence numbers in a partition continue in one epoch, whatever is found in other topics later.
        self._identities[topic] = Identity(self._attempt.producer_id, self._epoch())

    def not_yet_written(self, topic: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        if topic in self._done_topics:
            return rows.slice(0, 0)
        return rows.filter(pa.array(self._earlier.take(topic, rows))) if self._earlier else rows

    async def join(self, partitions: Collection[TopicPartition]) -> None:
        """Nothing to do: only transactions add partitions."""

    def identity_in(self, topic: str) -> Identity:
        return self._identities[topic]

    @property
    def _admin(self) -> Admin:
        return self._client.admin

    async def _is_done(self, topic: str) -> bool:
        """Whether the whole micro-batch is in the topic; otherwise its existing rows are found."""
        if not self._is_on:
            return False
        if self._marks is None:
            self._marks = await self._admin.group_offsets(self._attempt.query_group)
        marks = {at: mark for at, mark in self._marks.items() if at.topic == topic}
        if not marks:
            await self._look_as_of_own_mark(topic)
            return False
        mark = _read(marks)
        if mark.batch >= self._attempt.batch_id:
            return True
        if mark.run != self._attempt.run_id or self._attempt.number > 0:
            await self._look(topic, {at: each.offset for at, each in marks.items()})
        return False

    async def _look_as_of_own_mark(self, topic: str) -> None:
        group = self._attempt.task_group
        marks = {at: mark for at, mark in (await self._admin.group_offsets(group)).items() if at.topic == topic}
        self.has_task_group = True
        if marks and _read(marks).batch == self._attempt.batch_id:
            await self._look(topic, {at: each.offset for at, each in marks.items()})
        else:
            mark = BatchMark(self._attempt.run_id, self._attempt.batch_id)
            await set_marks(self._client, group, [topic], mark)

    async def _look(self, topic: str, starts: Mapping[TopicPartition, int]) -> None:
        self._may_be_repeated = True
        partitions = await self._client.partitions(topic)
        for at in (TopicPartition(topic, each) for each in partitions):
            # A partition that was added after the mark is read from its start.
            async for batches in fetch(self._client.router, at, starts.get(at, 0), _UNLIMITED):
                self._note_own(topic, batches)

    def _note_own(self, topic: str, batches: memoryview) -> None:
        at = 0
        while at < len(batches):
            header = read_header(batches, at)
            if self._attempt.is_of_this_batch(header.producer_id, header.producer_epoch):
                self._earlier.add(topic, to_arrow(batches[at : at + header.size]))
                highest = self._earlier.highest_epoch
                self._earlier.highest_epoch = max(header.producer_epoch, -1 if highest is None else highest)
            at += header.size

    def _epoch(self) -> int:
        if not self._may_be_repeated:
            return self._attempt.first_epoch
        epoch = self._attempt.epoch_after(self._earlier.highest_epoch)
        if epoch is None:
            where = f"micro-batch {self._attempt.batch_id} of query {self._attempt.query_id}"
            raise SinkError(f"task {self._attempt.task} of {where} was started too often: no producer epochs left")
        return epoch


async def set_marks(client: Client, group: str, topics: Iterable[str], mark: BatchMark) -> None:
    """Set marks at the end offsets of these topics."""
    partitions = [TopicPartition(topic, each) for topic in topics for each in await client.partitions(topic)]
    metadata = msgspec.json.encode(mark).decode()
    ends: _Marks = {}
    for at, found in (await client.admin.latest_offsets(partitions)).items():
        if isinstance(found, BrokerError):
            raise found
        ends[at] = CommittedOffset(found.offset, metadata=metadata)
    for refused in (await client.admin.alter_group_offsets(group, ends)).values():
        if refused is not None:
            raise refused


def _read(marks: _Marks) -> BatchMark:
    """The oldest mark of a topic."""
    return min(
        (msgspec.json.decode(each.metadata, type=BatchMark) for each in marks.values()), key=lambda mark: mark.batch
    )


def _digests(topic: str, rows: pa.RecordBatch) -> list[bytes]:
    names = rows.schema.names
    columns = [rows.column(name).to_pylist() if name in names else [None] * rows.num_rows for name in _CONTENT]
    return [_digest(topic, *row) for row in zip(*columns, strict=True)]


_CONTENT: Final = ("key", "value", "headers")


def _digest(topic: str, key: object, value: object, headers: list[dict[str, object]] | None) -> bytes:
    content = (topic, _bytes(key), _bytes(value), [(each["key"], _bytes(each["value"])) for each in headers or ()])
    return hashlib.blake2b(repr(content).encode(), digest_size=16).digest()


def _bytes(value: object) -> object:
    return value.encode() if isinstance(value, str) else value
