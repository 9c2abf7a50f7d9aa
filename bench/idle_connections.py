"""A working producer and consumer beside thousands of connections that do nothing, against the same two alone."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.report import Row, against, percentile
from bench.requests import exchange
from bench.sides import API_VERSIONS_V0, Ottla

IDLE = 2000
ROUNDS = 5
TRIPS = 400
TOPIC = "trips"


@contextmanager
def idle_connections(port: int) -> Iterator[None]:
    """Half after an ApiVersions request, half silent."""
    with ExitStack() as stack:
        for number in range(IDLE):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            if number % 2:
                exchange(connection, API_VERSIONS_V0)
        yield


class RoundTrips:
    """Produces a record and waits until it is consumed, again and again."""

    def __init__(self, port: int) -> None:
        quiet = {"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0}
        self._producer = Producer({**quiet, "linger.ms": 0})
        self._consumer = Consumer({**quiet, "group.id": "trips", "enable.auto.commit": False})
        self._producer.produce(TOPIC, b"first")
        self._producer.flush(30)
        self._consumer.assign([TopicPartition(TOPIC, 0, 0)])
        assert self._consumer.poll(30) is not None

    def measure_us(self, count: int) -> list[float]:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            self._producer.produce(TOPIC, b"v" * 100)
            self._producer.poll(0)
            message = self._consumer.poll(30)
            assert message is not None
            assert message.error() is None, message.error()
            times.append((time.perf_counter() - start) * 1e6)
        return times

    def close(self) -> None:
        self._producer.flush(30)
        self._consumer.close()


def rows() -> Iterator[Row]:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    alone_us: list[float] = []
    beside_us: list[float] = []
    kib_each = []
    with Ottla() as side:
        trips = RoundTrips(side.port)
        trips.measure_us(TRIPS)
        for _ in range(ROUNDS):
            alone_us += trips.measure_us(TRIPS)
            before_mib = side.resident_mib
            with idle_connections(side.port):
                kib_each.append((side.resident_mib - before_mib) * 1024 / IDLE)
                beside_us += trips.measure_us(TRIPS)
        trips.close()
    alone_us.sort()
    beside_us.sort()
    for share, goal in ((0.5, None), (0.99, 2.0)):
        name = f"produce to consume beside {IDLE:,} idle connections, p{share * 100:g}, against without them"
        yield against(name, percentile(beside_us, share), percentile(alone_us, share), at_most=goal)
    # In later rounds the memory of the first is there again.
    yield Row(what="memory per idle connection", ours=f"{max(kib_each):.1f} KiB")
