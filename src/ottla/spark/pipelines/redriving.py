"""Dead letters of a pipeline's sources, back into the topics they came from: each once. Needs no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.client.group.interface import Committed, GroupProgress
from ottla.core.ids import TopicPartition
from ottla.spark.link import link_to
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
    """Rows that a sink refused: they are no records of a source."""
    gone: int = 0
    """Records that were cut, and are in their topic no more."""


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


def letter_of(record: ConsumerRecord[bytes, bytes], pipeline: str) -> Letter | None:
    """None for a row of a sink, and for a record of another pipeline."""
    told = {name: value or b"" for name, value in record.headers if name.startswith(_OURS)}
    if told.get("ottla.pipeline") != pipeline.encode() or "ottla.topic" not in told:
        return None
    return Letter(
        TopicPartition(told["ottla.topic"].decode(), int(told["ottla.partition"])),
        int(told["ottla.offset"]),
        int(told["ottla.timestamp"]),
        record.key,
        record.value,
        tuple(each for each in record.headers if not each[0].startswith(_OURS)),
        "ottla.value-bytes" in told or "ottla.key-bytes" in told,
    )


def redrive(pipeline: Pipeline) -> Redriven:
    """All dead letters there are now, and were not sent back before."""
    link = link_to(kafka_of(pipeline))
    return link.call(_redrive(link.client, pipeline))


async def _redrive(client: Client, pipeline: Pipeline) -> Redriven:
    done = Redriven()
    group = f"{pipeline.name}.redrive"
    topics = {source.dead_letters for source in pipeline.sources.values() if source.has_dead_letters}
    existing = set(await client.topics())
    # The producer comes first: it ends the transaction that a killed redrive left open, and then offsets are settled.
    async with (
        client.producer(transactional_id=f"ottla-redrive-{pipeline.name}") as producer,
        client.consumer(auto_offset_reset="earliest", isolation_level="read_committed") as consumer,
    ):
        places = [TopicPartition(each, n) for each in sorted(topics & existing) for n in await client.partitions(each)]
        await consumer.assign(places)
        for at, committed in (await client.admin.group_offsets(group)).items():
            if at in places:
                consumer.seek(at, committed.offset)
        ends = await consumer.end_offsets(*places)
        while any([await consumer.position(at) < end for at, end in ends.items()]):
            records = [each for each in await consumer.poll(_AT_ONCE, _PATIENCE_MS) if _is_before(each, ends)]
            if not records:
                break
            await _send(client, producer, pipeline, records, done)
    return done


def _is_before(record: ConsumerRecord[bytes, bytes], ends: dict[TopicPartition, int]) -> bool:
    """A record that fails again becomes a dead letter again, and waits for the next call."""
    return record.offset < ends[TopicPartition(record.topic, record.partition)]


async def _send(
    client: Client,
    producer: Producer[Any, Any],
    pipeline: Pipeline,
    records: Sequence[ConsumerRecord[bytes, bytes]],
    done: Redriven,
) -> None:
    """Records and the progress of the group in one transaction."""
    async with producer.transaction():
        for record in records:
            letter = letter_of(record, pipeline.name)
            if letter is None:
                done.rows += 1
                continue
            whole = await _whole(client, letter) if letter.is_cut else letter
            if whole is None:
                done.gone += 1
                continue
            # Whether it arrived is known at the end of the transaction.
            _ = await producer.send(
                letter.at.topic,
                whole.value,
                key=whole.key,
                partition=letter.at.partition,
                timestamp_ms=letter.timestamp_ms,
                headers=list(whole.headers),
            )
            done.sent += 1
        read = {TopicPartition(each.topic, each.partition): Committed(each.offset + 1) for each in records}
        await producer.send_offsets(GroupProgress(f"{pipeline.name}.redrive", read))


async def _whole(client: Client, letter: Letter) -> ConsumerRecord[bytes, bytes] | None:
    """The record itself, if it is still in its topic."""
    consumer: Consumer[bytes, bytes]
    async with client.consumer(auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        await consumer.assign([letter.at])
        consumer.seek(letter.at, letter.offset)
        found = await consumer.poll(1, _PATIENCE_MS)
    return found[0] if found and found[0].offset == letter.offset else None
