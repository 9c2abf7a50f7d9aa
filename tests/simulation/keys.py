"""A compacted topic: the last value of each key is kept, and deleted keys do not reappear."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.core.ids import TopicPartition

from .edges import EDGES
from .work import OPTIONS, Writer

if TYPE_CHECKING:
    from .cluster import World
    from .work import Told

CONFIGS: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1000",
    "min.insync.replicas": "2",
}
_KEYS: Final = 6
_DELETED_EVERY: Final = 5
_COLD_EVERY: Final = 4
"""This share of records has keys written only once, so that a lost one is noticed."""


class KeyLedger:
    """The values sent under each key, and the last acknowledged one."""

    def __init__(self) -> None:
        self.sent: dict[tuple[int, str], set[str | None]] = {}
        self.last: dict[tuple[int, str], tuple[int, str | None]] = {}
        """Offset and value, None if the key was deleted."""
        self.open_deletes: dict[tuple[int, str], set[tuple[str, int]]] = {}
        """Tombstones that were not acknowledged and may be stored after the last acknowledged value."""

    def sending(self, key: tuple[int, str], value: str | None, by: tuple[str, int]) -> None:
        """Note a record, with its producer and its number there."""
        self.sent.setdefault(key, set()).add(value)
        if value is None:
            self.open_deletes.setdefault(key, set()).add(by)

    def acknowledged(self, key: tuple[int, str], offset: int | None, value: str | None, by: tuple[str, int]) -> None:
        # The records of an idempotent producer are stored in order.
        producer, number = by
        is_over = {each for each in self.open_deletes.get(key, ()) if each[0] == producer and each[1] <= number}
        if is_over:
            self.open_deletes[key] -= is_over
        if offset is not None and offset > self.last.get(key, (-1, None))[0]:
            self.last[key] = offset, value

    def violations(self, logs: dict[int, dict[int, tuple[str, str | None]]]) -> list[str]:
        found = []
        newest: dict[tuple[int, str], tuple[int, str | None]] = {}
        for partition, log in logs.items():
            for offset, (name, value) in sorted(log.items()):
                newest[partition, name] = offset, value
                if value not in self.sent.get((partition, name), ()):
                    found.append(f"key moved: {value} is at {partition}/{offset} under {name}, and was not sent so")
        for (partition, name), (offset, value) in self.last.items():
            if partition not in logs:
                continue
            kept = newest.get((partition, name))
            if kept is None and value is not None and not self.open_deletes.get((partition, name)):
                found.append(f"key lost: {name} of partition {partition}, which is {value} at {offset}")
            elif kept is not None and kept[0] < offset:
                found.append(f"key went back: {name} of partition {partition} is {kept}, and was {(offset, value)}")
            elif kept is not None and kept[0] == offset and kept[1] != value:
                found.append(f"key changed: {name} of partition {partition} is {kept}, and was {(offset, value)}")
        return found


def _key(number: int) -> tuple[str, bool]:
    """The key of a record, and whether it deletes the key."""
    if number % _COLD_EVERY:
        return f"k{number % _KEYS}", number % _DELETED_EVERY == 0
    cold = number // _COLD_EVERY
    is_deleted = cold % _DELETED_EVERY == _DELETED_EVERY - 1
    return f"c{cold - 2 if is_deleted else cold}", is_deleted


class KeyWriter(Writer):
    """Writes a few keys repeatedly, others once, and sometimes deletes one."""

    def __init__(self, world: World, name: str, host: str, told: Told, work: tuple[KeyLedger, float]) -> None:
        self.ledger, pace_s = work
        super().__init__(world, name, host, told, pace_s)

    async def _send(self, producer: Any, partition: int) -> None:
        number = self._numbers[partition]
        self._numbers[partition] += 1
        name, is_deleted = _key(number)
        key = partition, name
        by = f"{self.name}.{self._lives}", number
        value = None if is_deleted else f"{by[0]}:{partition}:{number}"
        self.ledger.sending(key, value, by)
        delivery = await producer.send(
            self.told.topic,
            None if value is None else value.encode(),
            key=key[1].encode(),
            partition=partition,
            timestamp_ms=EDGES.wall_ms(),
        )
        task = asyncio.create_task(self._told(key, value, by, delivery))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _told(self, key: tuple[int, str], value: str | None, by: tuple[str, int], delivery: Any) -> None:
        try:
            placed = await delivery
        except ClientError as failed:
            self.world.loop.note(self.name, str(failed))
        else:
            self.ledger.acknowledged(key, placed.offset, value, by)
            self.world.loop.note("ok", key, value, placed.offset)


async def read_keys(world: World, topic: str, partitions: list[int]) -> dict[int, dict[int, tuple[str, str | None]]]:
    """By partition and offset: key and value."""
    places = [TopicPartition(topic, index) for index in partitions]
    logs: dict[int, dict[int, tuple[str, str | None]]] = {index: {} for index in partitions}
    if not places:
        return logs
    async with Client(world.servers, client_id="keys", **OPTIONS) as client:
        ends: Any = await client.admin.latest_offsets(places)
        consumer: Any = client.consumer(auto_offset_reset="earliest")
        async with consumer:
            await consumer.assign(places)
            consumer.seek_to_beginning()
            while any([await consumer.position(at) < end.offset for at, end in ends.items()]):
                for record in await consumer.poll(timeout_ms=1000):
                    value = None if record.value is None else record.value.decode()
                    logs[record.partition][record.offset] = record.key.decode(), value
    return logs
