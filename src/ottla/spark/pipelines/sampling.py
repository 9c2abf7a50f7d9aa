"""The first records of topics, read by the client without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.core.errors import ConfigError
from ottla.spark.link import link_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.client.client import Client
    from ottla.client.consumer.record import ConsumerRecord
    from ottla.core.ids import TopicPartition
    from ottla.spark.pipelines.definition import Source

_PATIENCE_MS = 2000


def first_records(kafka: Mapping[str, str], topics: Sequence[str], count: int) -> list[ConsumerRecord[bytes, bytes]]:
    """At most this many, from the start of each partition."""
    link = link_to(kafka)
    return link.call(_read(link.client, topics, count))


async def _read(client: Client, topics: Sequence[str], count: int) -> list[ConsumerRecord[bytes, bytes]]:
    from ottla.core.ids import TopicPartition

    existing = set(await client.topics())
    for topic in topics:
        if topic not in existing:
            raise ConfigError(f"there is no topic {topic}")
    places = [TopicPartition(topic, each) for topic in topics for each in await client.partitions(topic)]
    found: list[ConsumerRecord[bytes, bytes]] = []
    async with client.consumer(auto_offset_reset="earliest") as consumer:
        await consumer.assign(places)
        ends = await consumer.end_offsets(*places)
        while len(found) < count and await _is_behind(consumer, ends):
            records = await consumer.poll(count - len(found), _PATIENCE_MS)
            if not records:
                break
            found += records
    return found


async def _is_behind(consumer: object, ends: Mapping[TopicPartition, int]) -> bool:
    for at, end in ends.items():
        if await consumer.position(at) < end:  # type: ignore[attr-defined]
            return True
    return False


def with_schema(source: Source, kafka: Mapping[str, str]) -> Source:
    """The source with the schema of its format, or one inferred from its first records, if it has none."""
    if source.schema is not None or not source.format.has_schema:
        return source
    try:
        if (found := source.format.found_schema(source)) is not None:
            return replace(source, schema=found)
        values = [record.value for record in first_records(kafka, source.topics, source.sample)]
        return replace(source, schema=source.format.infer(values, source.sample))
    except ConfigError as wrong:
        raise ConfigError(f"[source.{source.name}] schema: {wrong}") from None
