"""One client with one task in a separate process, so that its CPU time can be measured.

`python -m bench.client_drivers CLIENT WORK BOOTSTRAP TOPIC PARTITIONS SIZE COUNT` prints what it took as JSON.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bench.report import percentile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

GIVE_UP_S = 120


@dataclass(frozen=True, slots=True)
class Job:
    bootstrap: str
    topic: str
    partitions: int
    size: int
    count: int

    @property
    def value(self) -> bytes:
        return b"v" * self.size


@dataclass(frozen=True, slots=True)
class Figures:
    per_second: float = 0.0
    cpu_s_per_million: float = 0.0
    p50_us: float = 0.0
    p99_us: float = 0.0


class Stopwatch:
    """Started when the client is connected: how long that takes is another question."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = _cpu_s()

    def figures(self, count: int) -> Figures:
        wall, cpu = time.perf_counter() - self._wall, _cpu_s() - self._cpu
        return Figures(per_second=count / wall, cpu_s_per_million=cpu * 1e6 / count)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _latencies(times_s: list[float]) -> Figures:
    in_us = sorted(taken * 1e6 for taken in times_s)
    return Figures(p50_us=percentile(in_us, 0.5), p99_us=percentile(in_us, 0.99))


# confluent-kafka


def confluent_produce(job: Job) -> Figures:
    from confluent_kafka import Producer

    room = {"queue.buffering.max.messages": 10_000_000, "queue.buffering.max.kbytes": 2_000_000}
    producer = Producer({"bootstrap.servers": job.bootstrap, "enable.idempotence": True, **room})
    producer.list_topics(job.topic, timeout=30)
    value = job.value
    watch = Stopwatch()
    for number in range(job.count):
        producer.produce(job.topic, value)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(GIVE_UP_S) == 0
    return watch.figures(job.count)


def confluent_consume(job: Job) -> Figures:
    from confluent_kafka import Consumer, TopicPartition

    unpaused = {"queued.min.messages": 10_000_000, "fetch.queue.backoff.ms": 5}
    consumer = Consumer(
        {"bootstrap.servers": job.bootstrap, "group.id": "bench", "enable.auto.commit": False, **unpaused}
    )
    consumer.list_topics(job.topic, timeout=30)
    consumer.assign([TopicPartition(job.topic, partition, 0) for partition in range(job.partitions)])
    got = read = 0
    watch = Stopwatch()
    while got < job.count:
        messages = consumer.consume(10_000, timeout=GIVE_UP_S)
        assert messages, f"only {got} of {job.count} came"
        got += len(messages)
        for message in messages:
            read += len(message.value())
    figures = watch.figures(got)
    assert read == got * job.size
    consumer.close()
    return figures


def confluent_latency(job: Job) -> Figures:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": job.bootstrap, "linger.ms": 0, "enable.idempotence": True})
    times = []
    for _ in range(job.count):
        start = time.perf_counter()
        producer.produce(job.topic, job.value)
        producer.flush(30)
        times.append(time.perf_counter() - start)
    return _latencies(times)


# kafka-python


def kafka_python_produce(job: Job) -> Figures:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=job.bootstrap, linger_ms=5, batch_size=1 << 20)
    producer.partitions_for(job.topic)
    value = job.value
    watch = Stopwatch()
    for _ in range(job.count):
        producer.send(job.topic, value)
    producer.flush(GIVE_UP_S)
    figures = watch.figures(job.count)
    producer.close()
    return figures


def kafka_python_consume(job: Job) -> Figures:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=job.bootstrap, auto_offset_reset="earliest", max_poll_records=10_000)
    consumer.assign([TopicPartition(job.topic, partition) for partition in range(job.partitions)])
    consumer.topics()
    got = read = 0
    watch = Stopwatch()
    while got < job.count:
        answer = consumer.poll(timeout_ms=GIVE_UP_S * 1000)
        assert answer, f"only {got} of {job.count} came"
        for records in answer.values():
            got += len(records)
            for record in records:
                read += len(record.value)
    figures = watch.figures(got)
    assert read == got * job.size
    consumer.close()
    return figures


def kafka_python_latency(job: Job) -> Figures:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=job.bootstrap, linger_ms=0)
    times = []
    for _ in range(job.count):
        start = time.perf_counter()
        producer.send(job.topic, job.value).get(30)
        times.append(time.perf_counter() - start)
    producer.close()
    return _latencies(times)


# aiokafka


async def aiokafka_produce(job: Job) -> Figures:
    from aiokafka import AIOKafkaProducer

    async with AIOKafkaProducer(
        bootstrap_servers=job.bootstrap, enable_idempotence=True, linger_ms=5, max_batch_size=1 << 20
    ) as producer:
        await producer.partitions_for(job.topic)
        value = job.value
        watch = Stopwatch()
        for _ in range(job.count):
            await producer.send(job.topic, value)
        await producer.flush()
        return watch.figures(job.count)


async def aiokafka_consume(job: Job) -> Figures:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=job.bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    consumer.assign([TopicPartition(job.topic, partition) for partition in range(job.partitions)])
    got = read = 0
    watch = Stopwatch()
    while got < job.count:
        answer = await consumer.getmany(timeout_ms=GIVE_UP_S * 1000, max_records=10_000)
        assert answer, f"only {got} of {job.count} came"
        for records in answer.values():
            got += len(records)
            for record in records:
                read += len(record.value)
    figures = watch.figures(got)
    assert read == got * job.size
    await consumer.stop()
    return figures


async def aiokafka_latency(job: Job) -> Figures:
    from aiokafka import AIOKafkaProducer

    times = []
    async with AIOKafkaProducer(bootstrap_servers=job.bootstrap, enable_idempotence=True) as producer:
        for _ in range(job.count):
            start = time.perf_counter()
            await producer.send_and_wait(job.topic, job.value)
            times.append(time.perf_counter() - start)
    return _latencies(times)


# ottla.client


async def ottla_produce(job: Job) -> Figures:
    from ottla.client import Client

    async with Client(job.bootstrap) as client, client.producer() as producer:
        await client.partitions(job.topic)
        value = job.value
        send = producer.send
        watch = Stopwatch()
        for _ in range(job.count):
            await send(job.topic, value)
        await producer.flush()
        return watch.figures(job.count)


def ottla_blocking_produce(job: Job) -> Figures:
    import ottla

    with ottla.Producer(job.bootstrap) as producer:
        producer.partitions(job.topic)
        value = job.value
        send = producer.send
        watch = Stopwatch()
        for _ in range(job.count):
            send(job.topic, value)
        producer.flush()
        return watch.figures(job.count)


async def ottla_consume(job: Job) -> Figures:
    from ottla.client import Client

    async with (
        Client(job.bootstrap) as client,
        client.consumer(job.topic, auto_offset_reset="earliest") as consumer,
    ):
        got = read = 0
        watch = Stopwatch()
        while got < job.count:
            records = await consumer.poll(10_000, timeout_ms=GIVE_UP_S * 1000)
            assert records, f"only {got} of {job.count} came"
            got += len(records)
            for record in records:
                read += len(record.value or b"")
        figures = watch.figures(got)
        assert read == got * job.size
        return figures


async def ottla_iterate(job: Job) -> Figures:
    from ottla.client import Client

    async with (
        Client(job.bootstrap) as client,
        client.consumer(job.topic, auto_offset_reset="earliest") as consumer,
    ):
        got = read = 0
        watch = Stopwatch()
        async for record in consumer:
            got += 1
            read += len(record.value or b"")
            if got == job.count:
                break
        figures = watch.figures(got)
        assert read == got * job.size
        return figures


def ottla_blocking_consume(job: Job) -> Figures:
    import ottla

    with ottla.Consumer(job.bootstrap, topics=[job.topic], auto_offset_reset="earliest") as consumer:
        got = read = 0
        watch = Stopwatch()
        for record in consumer:
            got += 1
            read += len(record.value or b"")
            if got == job.count:
                break
        figures = watch.figures(got)
        assert read == got * job.size
        return figures


async def ottla_consume_arrow(job: Job) -> Figures:
    import pyarrow as pa

    from ottla.client import Client

    # The first fetch_arrow, which is timed, would load it, and pandas with the first scalar, where that is installed.
    pa.repeat(pa.scalar("", pa.string()), 1)

    async with (
        Client(job.bootstrap) as client,
        client.consumer(job.topic, auto_offset_reset="earliest") as consumer,
    ):
        got = 0
        watch = Stopwatch()
        while got < job.count:
            table = await consumer.fetch_arrow(timeout_ms=GIVE_UP_S * 1000)
            assert table.num_rows, f"only {got} of {job.count} came"
            got += table.num_rows
        return watch.figures(got)


async def ottla_latency(job: Job) -> Figures:
    from ottla.client import Client

    times = []
    async with Client(job.bootstrap) as client, client.producer() as producer:
        for _ in range(job.count):
            start = time.perf_counter()
            await (await producer.send(job.topic, job.value))
            times.append(time.perf_counter() - start)
    return _latencies(times)


def run(client: str, work: str, job: Job) -> Figures:
    """Look the driver up by its name, and run it."""
    driver: Callable[[Job], Figures | Awaitable[Figures]] = globals()[f"{client}_{work}"]
    if not asyncio.iscoroutinefunction(driver):
        done = driver(job)
        assert isinstance(done, Figures)
        return done
    try:
        import uvloop
    except ImportError:
        return asyncio.run(driver(job))
    return uvloop.run(driver(job))


if __name__ == "__main__":
    client, work, bootstrap, topic, *numbers = sys.argv[1:]
    partitions, size, count = map(int, numbers)
    print(json.dumps(asdict(run(client, work, Job(bootstrap, topic, partitions, size, count)))))
