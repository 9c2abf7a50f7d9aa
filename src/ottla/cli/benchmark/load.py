"""The loads of `ottla bench`: produce at full speed, consume, and produce at a fixed rate."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.benchmark.results import Measured
from ottla.cli.output import progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.client import Client
    from ottla.client.producer.producer import Producer
    from ottla.core.ids import TopicPartition

VALUES: Final = 64
"""How many different values are sent, in turn."""
_TIMED_EVERY: Final = 64
_LOOK_AT_THE_CLOCK_EVERY: Final = 256
_AT_A_TIME: Final = 5000
_STAMP_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Load:
    topic: str
    messages: int
    seconds: float
    size: int
    rate: int
    producer_options: dict[str, Any]

    def values(self) -> list[bytes]:
        """Random hexadecimal digits, the same in each run; they compress to a little over half."""
        digits = random.Random(self.size)  # noqa: S311 - not for security
        return [digits.randbytes(self.size // 2 + 1).hex().encode()[: self.size] for _ in range(VALUES)]

    @property
    def paced_messages(self) -> int:
        return max(1, min(self.messages, round(self.rate * self.seconds)))


async def produce(client: Client, load: Load) -> Measured:
    """Produce at full speed. Latency is measured from the call to the acknowledgement, for a sample of the messages.

    It is that of a producer whose queues are full, and mostly the time that messages wait in them.
    """
    latencies: list[float] = []
    values = load.values()
    async with client.producer(**load.producer_options) as producer:
        with progress("Producing", load.messages) as advance:
            begun = time.perf_counter()
            sent = 0
            while sent < load.messages:
                called = time.perf_counter()
                delivery = await producer.send(load.topic, values[sent % VALUES])
                sent += 1
                if sent % _TIMED_EVERY == 1:
                    delivery.batch.when_done(_timing(latencies, called))
                if sent % _LOOK_AT_THE_CLOCK_EVERY == 0:
                    advance(_LOOK_AT_THE_CLOCK_EVERY)
                    if called - begun > load.seconds:
                        break
            await producer.flush()
            elapsed = time.perf_counter() - begun
    return Measured("produce", sent, sent * load.size, elapsed, latencies)


def _timing(latencies: list[float], since: float) -> Callable[[], None]:
    return lambda: latencies.append(time.perf_counter() - since)


async def consume(client: Client, load: Load, start: dict[TopicPartition, int], messages: int) -> Measured:
    """Consume the produced messages as objects, until all have arrived or the time is up."""
    async with client.consumer() as consumer:
        # First imports are not measured; prefetching is.
        begun = now = time.perf_counter()
        await consumer.assign(list(start))
        for where, offset in start.items():
            consumer.seek(where, offset)
        received = received_bytes = 0
        with progress("Consuming", messages) as advance:
            while received < messages and now - begun < load.seconds:
                records = await consumer.poll(_AT_A_TIME, timeout_ms=100)
                received += len(records)
                received_bytes += sum(len(record.value or b"") for record in records)
                advance(len(records))
                now = time.perf_counter()
    return Measured("consume", received, received_bytes, now - begun)


async def trickle(client: Client, load: Load, partitions: list[TopicPartition]) -> list[Measured]:
    """Produce at a constant rate: measures the latency to the acknowledgement, and to a waiting consumer.

    Counted from when a message was due, so that one that had to wait for its turn is not counted as fast.
    """
    count = load.paced_messages
    acknowledged: list[float] = []
    arrived: list[float] = []
    async with client.consumer() as consumer, client.producer(**load.producer_options) as producer:
        await consumer.assign(partitions)
        consumer.seek_to_end()
        for where in partitions:
            await consumer.position(where)
        with progress("One by one", count) as advance:

            async def receive() -> None:
                async for record in consumer:
                    due_ns = int.from_bytes((record.value or b"")[:_STAMP_BYTES], "big")
                    arrived.append((time.perf_counter_ns() - due_ns) / 1e9)
                    advance(1)
                    if len(arrived) == count:
                        return

            receiving = asyncio.create_task(receive())
            begun = time.perf_counter()
            try:
                await _send_in_time(producer, load, count, acknowledged)
                await asyncio.wait([receiving], timeout=load.seconds)
            finally:
                receiving.cancel()
            elapsed = time.perf_counter() - begun
    return [
        Measured(
            f"acknowledged at {load.rate}/s", len(acknowledged), len(acknowledged) * load.size, elapsed, acknowledged
        ),
        Measured(f"received at {load.rate}/s", len(arrived), len(arrived) * load.size, elapsed, arrived),
    ]


async def _send_in_time(producer: Producer[bytes, bytes], load: Load, count: int, acknowledged: list[float]) -> None:
    padding = b"x" * (load.size - _STAMP_BYTES)
    first_ns = time.perf_counter_ns()

    async def send(due_ns: int) -> None:
        delivery = await producer.send(load.topic, due_ns.to_bytes(_STAMP_BYTES, "big") + padding)
        await delivery
        acknowledged.append((time.perf_counter_ns() - due_ns) / 1e9)

    sending = []
    for number in range(count):
        due_ns = first_ns + number * 1_000_000_000 // load.rate
        await asyncio.sleep((due_ns - time.perf_counter_ns()) / 1e9)
        sending.append(asyncio.create_task(send(due_ns)))
    await asyncio.gather(*sending)
