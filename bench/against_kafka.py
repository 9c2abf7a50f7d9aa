"""Ottla beside Apache Kafka: same machine, same disk, same client.

Both run, one is measured at a time and the other idle, in turns: whatever else the machine does meets both.
"""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TypeVar

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.report import Row, percentile
from bench.requests import connect, exchange, pipelined_per_second, produce_frame, single_us
from bench.sides import Kafka, Ottla, Side

RECORDS = {100: 400_000, 1024: 130_000}
PARTITIONS = (1, 6)
PRODUCES = 3
CONSUMES = 7
STARTS = 5
LATENCY_ROUNDS = 5
SYNC_PRODUCES = 400
ROUND_TRIPS = 400
RAW_REQUESTS = 5_000
RAW_PIPELINED = 32_000
GIGABYTE = 1 << 30

Measured = TypeVar("Measured")


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
    # By default librdkafka stops fetching for a second whenever 100,000 records or 64 MiB wait for the application: a
    # broker that fills the queue faster than they are taken would be measured by that pause.
    unpaused = {"queued.min.messages": 10_000_000, "queued.max.messages.kbytes": 1_000_000}
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


def raw_rates(side: Side) -> tuple[float, float]:
    """Produce requests per second, one and many in flight."""
    connection: socket.socket = connect(side.port)
    frame = produce_frame()
    answer = exchange(connection, frame)
    times = sorted(single_us(connection, frame, RAW_REQUESTS))
    return 1e6 / percentile(times, 0.5), pipelined_per_second(connection, frame, len(answer), RAW_PIPELINED)


def in_turns(sides: list[Side], rounds: int, measure: Callable[[Side], Measured]) -> list[list[Measured]]:
    """What was measured of each side."""
    measured = [[measure(side) for side in sides] for _ in range(rounds)]
    return [list(column) for column in zip(*measured, strict=True)]


def medians(columns: list[list[float]]) -> list[float]:
    return [statistics.median(column) for column in columns]


def starts_ms(kinds: list[type[Kafka | Ottla]]) -> list[float]:
    def start(kind: type[Kafka | Ottla]) -> float:
        with kind() as side:
            return side.first_answer_ms

    rounds = [[start(kind) for kind in kinds] for _ in range(STARTS)]
    return medians([list(column) for column in zip(*rounds, strict=True)])


def throughput(sides: list[Side]) -> Iterator[tuple[str, list[float]]]:
    for size, count in RECORDS.items():
        for partitions in PARTITIONS:
            topic = f"t-{size}-{partitions}"
            for side in sides:
                create(side, topic, partitions)
            what = f"{size} B records, {partitions} partition{'s' if partitions > 1 else ''}, per second"
            produced = in_turns(sides, PRODUCES, lambda side: produce_per_second(side, topic, size, count))  # noqa: B023
            yield f"produce {what}", medians(produced)
            all_of_it = PRODUCES * count
            consumed = in_turns(sides, CONSUMES, lambda side: consume_per_second(side, topic, partitions, all_of_it))  # noqa: B023
            yield f"consume {what}", medians(consumed)


def latency(sides: list[Side]) -> Iterator[tuple[str, list[float]]]:
    for side in sides:
        create(side, "latency", 1)
    for name, measure_us in (("synchronous produce", sync_produce_us), ("produce to consume", round_trip_us)):
        columns = in_turns(sides, LATENCY_ROUNDS, lambda side: measure_us(side, "latency"))  # noqa: B023
        times = [sorted(chain.from_iterable(column)) for column in columns]
        yield f"{name}, p50 µs", [percentile(column, 0.5) for column in times]
        yield f"{name}, p99 µs", [percentile(column, 0.99) for column in times]


def raw_requests(sides: list[Side]) -> Iterator[tuple[str, list[float]]]:
    for side in sides:
        create(side, "bench", 1)
    columns = in_turns(sides, PRODUCES, raw_rates)
    yield "raw produce, one in flight, per second", medians([[one for one, _ in column] for column in columns])
    yield "raw produce, 32 in flight, per second", medians([[many for _, many in column] for column in columns])


def resident(sides: list[Side]) -> list[float]:
    return [side.resident_mib for side in sides]


def fill_up(side: Side) -> None:
    """So that each has been sent a gigabyte in all."""
    sent = sum(PRODUCES * len(PARTITIONS) * size * count for size, count in RECORDS.items())
    produce_per_second(side, "t-1024-1", 1024, max(GIGABYTE - sent, 0) // 1024)


def measurements() -> Iterator[tuple[str, list[float]]]:
    """Of everything, our figure and Kafka's."""
    yield "exec to first answer, ms", starts_ms([Ottla, Kafka])
    with Ottla() as ours, Kafka() as theirs:
        sides: list[Side] = [ours, theirs]
        yield "resident idle, MiB", resident(sides)
        yield from throughput(sides)
        for side in sides:
            fill_up(side)
        yield "resident after 1 GB, MiB", resident(sides)
        yield from latency(sides)
        yield from raw_requests(sides)


def goal_for(name: str) -> tuple[str, float]:
    """Whether more or less is better, and the ratio to reach."""
    if name.endswith("per second"):
        return ">=", 1.0
    if name.startswith("exec"):
        return "<=", 0.05
    return "<=", 0.15 if name.startswith("resident") else 0.5


def rows() -> Iterator[Row]:
    for name, (ours, theirs) in measurements():
        sign, goal = goal_for(name)
        ratio = ours / theirs
        yield Row(
            what=name,
            ours=f"{ours:,.0f}",
            theirs=f"{theirs:,.0f}",
            ratio=ratio,
            goal=f"{sign} {goal}x",
            is_reached=ratio >= goal if sign == ">=" else ratio <= goal,
        )
