"""Redrives dead letters of a pipeline's sources to their topics, each once. Needs no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.client.group.interface import Committed, GroupProgress
from ottla.core.ids import TopicPartition
from ottla.spark.link import link_to
from ottla.spark.pipelines.dead_letters.choosing import LetterFilter, SkippedLetters
from ottla.spark.pipelines.preparing import kafka_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.client.client import Client
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.consumer.record import ConsumerRecord
    from ottla.client.producer.producer import Producer
    from ottla.spark.pipelines.definition import Pipeline

_AT_ONCE: Final = 500
_PATIENCE_MS: Final = 2000
_OURS: Final = "ottla."


@dataclass(slots=True)
class Redriven:
    sent: int = 0
    rows: int = 0
    """Rows that a sink rejected: they are not records of a source."""
    gone: int = 0
    """Truncated records that are no longer in their topic."""
    left: int = 0
    """Records that the filter did not select."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A record as it was before it became a dead letter."""

    at: TopicPartition
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    is_cut: bool
    reason: str = ""

    def columns(self) -> dict[str, object]:
        """The columns for the expression."""
        return {
            "reason": self.reason,
            "topic": self.at.topic,
            "partition": self.at.partition,
            "offset": self.offset,
            "timestamp": self.timestamp_ms,
            "key": None if self.key is None else self.key.decode("utf-8", "replace"),
            "value": None if self.value is None else self.value.decode("utf-8", "replace"),
        }


def letter_of(record: ConsumerRecord[bytes, bytes], pipeline: str) -> Letter | None:
    """None for a row of a sink, and for a record of another pipeline."""
    headers = {name: value or b"" for name, value in record.headers if name.startswith(_OURS)}
    if headers.get("ottla.pipeline") != pipeline.encode() or "ottla.topic" not in headers:
        return None
    return Letter(
        TopicPartition(headers["ottla.topic"].decode(), int(headers["ottla.partition"])),
        int(headers["ottla.offset"]),
        int(headers["ottla.timestamp"]),
        record.key,
        record.value,
        tuple(each for each in record.headers if not each[0].startswith(_OURS)),
        "ottla.value-bytes" in headers or "ottla.key-bytes" in headers,
        headers.get("ottla.error", b"").decode("utf-8", "replace"),
    )


def redrive(pipeline: Pipeline, where: str | None = None) -> Redriven:
    """Send back all dead letters that were not sent back before, or those that the expression selects."""
    choice = None if where is None else LetterFilter(where)
    link = link_to(kafka_of(pipeline))
    return link.call(_Redrive(link.client, pipeline, choice).run())


class _Redrive:
    def __init__(self, client: Client, pipeline: Pipeline, choice: LetterFilter | None) -> None:
        self._client = client
        self._pipeline = pipeline
        self._choice = choice
        self._group = f"{pipeline.name}.redrive"
        self._position: dict[TopicPartition, int] = {}
        self._left: dict[TopicPartition, SkippedLetters] = {}
        self._done = Redriven()

    async def run(self) -> Redriven:
        client = self._client
        topics = {source.dead_letters for source in self._pipeline.sources.values() if source.has_dead_letters}
        existing = set(await client.topics())
        # The producer first: it ends the open transaction of a killed redrive, after which the offsets are final.
        async with (
            client.producer(transactional_id=f"ottla-redrive-{self._pipeline.name}") as producer,
            client.consumer(auto_offset_reset="earliest", isolation_level="read_committed") as consumer,
        ):
            names = sorted(topics & existing)
            places = [TopicPartition(each, n) for each in names for n in await client.partitions(each)]
            await consumer.assign(places)
            await self._resume(consumer, places)
            ends = await consumer.end_offsets(*places)
            while any([await consumer.position(at) < end for at, end in ends.items()]):
                records = [each for each in await consumer.poll(_AT_ONCE, _PATIENCE_MS) if _is_before(each, ends)]
                if not records:
                    break
                await self._send(producer, records)
        return self._done

    async def _resume(self, consumer: Consumer[bytes, bytes], places: Sequence[TopicPartition]) -> None:
        """Seek to the first letter that an earlier call skipped, or to where it ended."""
        committed = await self._client.admin.group_offsets(self._group)
        for at in places:
            known = committed.get(at)
            self._position[at] = 0 if known is None else known.offset
            self._left[at] = SkippedLetters("" if known is None else known.metadata)
            if known is not None:
                first = self._left[at].first
                consumer.seek(at, known.offset if first is None else first)

    async def _send(self, producer: Producer[Any, Any], records: Sequence[ConsumerRecord[bytes, bytes]]) -> None:
        """Send the records and commit the group's offsets in one transaction."""
        async with producer.transaction():
            for record in records:
                at = TopicPartition(record.topic, record.partition)
                if record.offset < self._position[at] and record.offset not in self._left[at]:
                    continue  # sent by an earlier call
                is_handled = await self._handle(producer, record)
                self._left[at].take(record.offset, is_sent=is_handled)
                self._position[at] = max(self._position[at], record.offset + 1)
            read = {at: Committed(self._position[at], metadata=left.note()) for at, left in self._left.items()}
            await producer.send_offsets(GroupProgress(self._group, read))

    async def _handle(self, producer: Producer[Any, Any], record: ConsumerRecord[bytes, bytes]) -> bool:
        """False for a skipped letter: a later call may select it."""
        letter = letter_of(record, self._pipeline.name)
        if letter is None:
            self._done.rows += 1
            return True
        if self._choice is not None and not self._choice.takes(letter.columns()):
            self._done.left += 1
            return False
        whole = await _whole(self._client, letter) if letter.is_cut else letter
        if whole is None:
            self._done.gone += 1
            return True
        # The end of the transaction confirms the delivery.
        _ = await producer.send(
            letter.at.topic,
            whole.value,
            key=whole.key,
            partition=letter.at.partition,
            timestamp_ms=letter.timestamp_ms,
            headers=list(whole.headers),
        )
        self._done.sent += 1
        return True


def _is_before(record: ConsumerRecord[bytes, bytes], ends: dict[TopicPartition, int]) -> bool:
    """A record that fails again becomes a dead letter again, and waits for the next call."""
    return record.offset < ends[TopicPartition(record.topic, record.partition)]


async def _whole(client: Client, letter: Letter) -> ConsumerRecord[bytes, bytes] | None:
    """The record itself, if it is still in its topic."""
    consumer: Consumer[bytes, bytes]
    async with client.consumer(auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        await consumer.assign([letter.at])
        consumer.seek(letter.at, letter.offset)
        found = await consumer.poll(1, _PATIENCE_MS)
    return found[0] if found and found[0].offset == letter.offset else None
