"""Ottla beside Apache Kafka: same machine, same disk, same client, one after the other."""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Iterator

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.report import Row, percentile
from bench.requests import connect, exchange, pipelined_per_second, produce_frame, single_us
from bench.sides import Kafka, Ottla, Side

RECORDS = {100: 600_000, 1024: 300_000}
PARTITIONS = (1, 6)
CONSUMES = 5
STARTS = 3
SYNC_PRODUCES = 2_000
ROUND_TRIPS = 1_000
RAW_REQUESTS = 5_000
RAW_PIPELINED = 32_000
GIGABYTE = 1 << 30

Figures = dict[str, float]


def quiet(side: Side) -> dict[str, object]:
    return {"bootstrap.servers": side.bootstrap, "log_level": 0}


def create(side: Side, topic: str, partitions: int) -> None:
    admin = AdminClient(quiet(side))
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(30)


def produce_per_second(side: Side, topic: str, size: int, count: int) -> float:
    producer = Producer({**quiet(side), "queue.buffering.max.messages": 10_000_000})
    producer.list_topics(topic, timeout=30)
    value = b"v" * size
    start = time.perf_counter()
    for number in range(count):
        producer.produce(topic, value)
        if number % 10_000 == 0:
            producer.poll(0)
    left = producer.flush(120)
    assert left == 0, f"{left} records were not delivered"
    return count / (time.perf_counter() - start)


def consume_per_second(side: Side, topic: str, partitions: int, count: int) -> float:
    # By default librdkafka stops fetching for a second whenever 100,000 records wait for the application: a broker
    # that fills the queue faster than they are taken would be measured by that pause.
    unpaused = {"queued.min.messages": 10_000_000, "fetch.queue.backoff.ms": 5}
    consumer = Consumer({**quiet(side), **unpaused, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    got = 0
    start = time.perf_counter()
    while got < count:
        messages = consumer.consume(10_000, timeout=30)
        assert messages, f"only {got} of {count} records came"
        got += len(messages)
    rate = got / (time.perf_counter() - start)
    consumer.close()
    return rate


def sync_produce_us(side: Side, topic: str) -> list[float]:
    producer = Producer({**quiet(side), "linger.ms": 0})
    times = []
    for _ in range(SYNC_PRODUCES):
        start = time.perf_counter()
        producer.produce(topic, b"v" * 100)
        producer.flush(30)
        times.append((time.perf_counter() - start) * 1e6)
    return sorted(times)


def round_trip_us(side: Side, topic: str) -> list[float]:
    producer = Producer({**quiet(side), "linger.ms": 0})
    consumer = Consumer({**quiet(side), "group.id": "trip", "enable.auto.commit": False})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    consumer.assign([TopicPartition(topic, 0, end)])
    producer.produce(topic, b"first")
    producer.flush(30)
    assert consumer.poll(30) is not None
    times = []
    for _ in range(ROUND_TRIPS):
        start = time.perf_counter()
        producer.produce(topic, b"v" * 100)
        producer.poll(0)
        assert consumer.poll(30) is not None
        times.append((time.perf_counter() - start) * 1e6)
    consumer.close()
    return sorted(times)


def raw_figures(side: Side) -> Figures:
    create(side, "bench", 1)
    connection: socket.socket = connect(side.port)
    frame = produce_frame()
    answer = exchange(connection, frame)
    times = sorted(single_us(connection, frame, RAW_REQUESTS))
    return {
        "raw produce, one in flight, per second": 1e6 / percentile(times, 0.5),
        "raw produce, 32 in flight, per second": pipelined_per_second(connection, frame, len(answer), RAW_PIPELINED),
    }


def measure(side: Side) -> Figures:
    figures: Figures = {"resident idle, MiB": side.resident_mib}
    sent = 0
    for size, count in RECORDS.items():
        for partitions in PARTITIONS:
            topic = f"t-{size}-{partitions}"
            create(side, topic, partitions)
            what = f"{size} B records, {partitions} partition{'s' if partitions > 1 else ''}, per second"
            figures[f"produce {what}"] = produce_per_second(side, topic, size, count)
            # One takes half a second: over before a virtual machine is warm, and at the mercy of whatever else runs.
            consumes = [consume_per_second(side, topic, partitions, count) for _ in range(CONSUMES)]
            figures[f"consume {what}"] = statistics.median(consumes)
            sent += size * count
    create(side, "latency", 1)
    sync, trip = sync_produce_us(side, "latency"), round_trip_us(side, "latency")
    for name, times in (("synchronous produce", sync), ("produce to consume", trip)):
        figures[f"{name}, p50 µs"] = percentile(times, 0.5)
        figures[f"{name}, p99 µs"] = percentile(times, 0.99)
    figures |= raw_figures(side)
    while sent < GIGABYTE:
        produce_per_second(side, "t-1024-1", 1024, RECORDS[1024])
        sent += 1024 * RECORDS[1024]
    figures["resident after 1 GB, MiB"] = side.resident_mib
    return figures


def measure_from_start(new_side: type[Kafka | Ottla]) -> Figures:
    starts_ms = []
    for _ in range(STARTS - 1):
        with new_side() as side:
            starts_ms.append(side.first_answer_ms)
    with new_side() as side:
        starts_ms.append(side.first_answer_ms)
        return {"exec to first answer, ms": statistics.median(starts_ms), **measure(side)}


def goal_for(name: str) -> tuple[str, float]:
    """Whether more or less is better, and the ratio to reach."""
    if name.endswith("per second"):
        return ">=", 1.0
    if name.startswith("exec"):
        return "<=", 0.05
    return "<=", 0.15 if name.startswith("resident") else 0.5


def rows() -> Iterator[Row]:
    theirs, ours = measure_from_start(Kafka), measure_from_start(Ottla)
    for name, our_figure in ours.items():
        sign, goal = goal_for(name)
        ratio = our_figure / theirs[name]
        yield Row(
            what=name,
            ours=f"{our_figure:,.0f}",
            theirs=f"{theirs[name]:,.0f}",
            ratio=ratio,
            goal=f"{sign} {goal}x",
            is_reached=ratio >= goal if sign == ">=" else ratio <= goal,
        )
