"""REST beside the Kafka protocol: rates, the latency of a tail, and what a busy REST client costs a Kafka client."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.report import Row, against, percentile, speed
from bench.requests import connect, exchange, produce_frame, single_us

SINGLE = 2_000
BATCH = 500
BATCHES = 40
STREAMED = 100_000
TAIL_MESSAGES = 300
KAFKA_REQUESTS = 5_000
PAIRS = 5
LOWEST_PRIORITY = 19
ROUNDS = 3
BODY = {"content-type": "application/json"}
NDJSON = "application/x-ndjson"
MESSAGE = b'{"key":"customer-1","value":{"order":17,"items":["coffee","cake"],"pad":"%b"}}' % (b"x" * 900)


class Ports(NamedTuple):
    kafka: int
    http: int


@contextmanager
def ottla(folder: Path) -> Iterator[Ports]:
    ready = folder / "ready.json"
    command = [sys.executable, "-m", "ottla", "serve", "--port", "0", "--http-port", "0"]
    process = subprocess.Popen(
        [*command, "--data-dir", str(folder / "data"), "--ready-file", str(ready)], stdout=subprocess.DEVNULL
    )
    try:
        while not ready.exists():
            time.sleep(0.005)
        found = msgspec.json.decode(ready.read_bytes())
        yield Ports(*(int(found[door].rpartition(":")[2]) for door in ("kafka", "http")))
    finally:
        process.terminate()
        process.wait()


class Rest:
    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> bytes:
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        assert answer.status < 300, content
        return content


def per_second(work: Callable[[], int]) -> float:
    """The best of some rounds."""
    best = 0.0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        count = work()
        best = max(best, count / (time.perf_counter() - began))
    return best


def write_rates(rest: Rest) -> tuple[float, float, float]:
    single = b'{"messages":[%b]}' % MESSAGE
    batch = b'{"messages":[%b]}' % b",".join([MESSAGE] * BATCH)
    lines = (MESSAGE + b"\n") * (STREAMED // 5)

    def write_single() -> int:
        for _ in range(SINGLE):
            rest.ask("POST", "/v1/topics/rest/messages", single, **BODY)
        return SINGLE

    def write_batches() -> int:
        for _ in range(BATCHES):
            rest.ask("POST", "/v1/topics/rest/messages", batch, **BODY)
        return BATCHES * BATCH

    def write_lines() -> int:
        rest.ask("POST", "/v1/topics/rest/messages", lines, **{"content-type": NDJSON})
        return STREAMED // 5

    return per_second(write_single), per_second(write_batches), per_second(write_lines)


def read_rates(rest: Rest) -> tuple[float, float, float]:
    def read_single() -> int:
        for number in range(SINGLE):
            rest.ask("GET", f"/v1/topics/rest/messages?partition=0&offset={number}&limit=1")
        return SINGLE

    def read_pages() -> int:
        cursor = "0:0"
        for _ in range(BATCHES):
            page = msgspec.json.decode(rest.ask("GET", f"/v1/topics/rest/messages?cursor={cursor}&limit={BATCH}"))
            cursor = page["next"]
        return BATCHES * BATCH

    def read_lines() -> int:
        rest.ask("GET", f"/v1/topics/rest/messages?limit={STREAMED // 2}", accept=NDJSON)
        return STREAMED // 2

    return per_second(read_single), per_second(read_pages), per_second(read_lines)


def tail_latencies_us(ports: Ports, frame: bytes) -> list[float]:
    """From sending a produce request over Kafka to reading its message from the tail."""
    with connect(ports.kafka) as kafka, socket.create_connection(("127.0.0.1", ports.http)) as tail:
        tail.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tail.sendall(b"GET /v1/topics/bench/tail HTTP/1.1\r\nhost: x\r\n\r\n")
        received = tail.recv(65536)
        while b"retry:" not in received:
            received += tail.recv(65536)
        latencies = []
        for _ in range(TAIL_MESSAGES):
            time.sleep(0.02)
            began = time.perf_counter()
            exchange(kafka, frame)
            received = b""
            while b"event: message" not in received:
                received += tail.recv(65536)
            latencies.append((time.perf_counter() - began) * 1e6)
    return sorted(latencies)


@contextmanager
def busy(door: str, port: int, niceness: int = 0) -> Iterator[None]:
    """A client in another process that asks as fast as it is answered."""
    process = subprocess.Popen([sys.executable, "-m", "bench.rest", door, str(port), str(niceness)])
    try:
        time.sleep(1)
        yield
    finally:
        process.terminate()
        process.wait()


def be_busy_with_kafka(port: int) -> None:
    frame = produce_frame()
    with connect(port) as kafka:
        while True:
            exchange(kafka, frame)


def be_busy_with_rest(port: int) -> None:
    rest = Rest(port)
    body = b'{"messages":[%b]}' % b",".join([MESSAGE] * 10)
    while True:
        rest.ask("POST", "/v1/topics/rest/messages", body, **BODY)
        rest.ask("GET", "/v1/topics/rest/messages?partition=0&last=10")


class Latency(NamedTuple):
    p50_us: float
    p99_us: float


def kafka_latency(port: int, frame: bytes) -> Latency:
    with connect(port) as kafka:
        found = sorted(single_us(kafka, frame, KAFKA_REQUESTS))
    return Latency(percentile(found, 0.5), percentile(found, 0.99))


def median(found: list[Latency]) -> Latency:
    middle = len(found) // 2
    return Latency(sorted(one.p50_us for one in found)[middle], sorted(one.p99_us for one in found)[middle])


def beside_others(ports: Ports, frame: bytes) -> tuple[Latency, Latency, Latency, Latency]:
    """Alone, beside a busy REST client, beside one that leaves us the processor, beside a busy Kafka client.

    By turns, so that a noisy minute hits all of them.
    """
    alone, beside_rest, beside_polite, beside_kafka = [], [], [], []
    for _ in range(PAIRS):
        alone.append(kafka_latency(ports.kafka, frame))
        with busy("rest", ports.http):
            beside_rest.append(kafka_latency(ports.kafka, frame))
        with busy("rest", ports.http, LOWEST_PRIORITY):
            beside_polite.append(kafka_latency(ports.kafka, frame))
        with busy("kafka", ports.kafka):
            beside_kafka.append(kafka_latency(ports.kafka, frame))
    return median(alone), median(beside_rest), median(beside_polite), median(beside_kafka)


def rows() -> Iterator[Row]:
    frame = produce_frame()
    with tempfile.TemporaryDirectory() as folder, ottla(Path(folder)) as ports:
        rest = Rest(ports.http)
        rest.ask("POST", "/v1/topics", b'{"name":"bench"}')
        single, batch, lines = write_rates(rest)
        yield speed("write 1 KiB messages, 500 a request, against one a request", batch / 1000, single / 1000, "k/s")
        yield speed("write 1 KiB messages as ndjson, against one a request", lines / 1000, single / 1000, "k/s")
        single, pages, lines = read_rates(rest)
        yield speed("read 1 KiB messages, 500 a page, against one a request", pages / 1000, single / 1000, "k/s")
        yield speed("read 1 KiB messages as ndjson, against one a request", lines / 1000, single / 1000, "k/s")
        alone, beside_rest, beside_polite, beside_kafka = beside_others(ports, frame)
        tail = tail_latencies_us(ports, frame)
        yield against("a message in the tail, p50, against its produce request", percentile(tail, 0.5), alone.p50_us)
        yield against("a message in the tail, p99, against its produce request", percentile(tail, 0.99), alone.p99_us)
        what = "one Kafka produce beside a busy REST client"
        yield against(f"{what}, p50, against alone", beside_rest.p50_us, alone.p50_us)
        yield against(f"{what}, p99, against alone", beside_rest.p99_us, alone.p99_us, at_most=1.5)
        yield against(f"{what}, p99, against beside a busy Kafka client", beside_rest.p99_us, beside_kafka.p99_us)
        yield against(f"{what} of the lowest priority, p99, against alone", beside_polite.p99_us, alone.p99_us)


if __name__ == "__main__":
    os.nice(int(sys.argv[3]))
    {"rest": be_busy_with_rest, "kafka": be_busy_with_kafka}[sys.argv[1]](int(sys.argv[2]))
