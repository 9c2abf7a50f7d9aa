"""DMQP: round trips per second and their time, one client and many, beside Kafka's produce in the same run."""

from __future__ import annotations

import multiprocessing
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import msgspec

from bench.report import Row, against, percentile, speed
from bench.requests import connect, produce_frame, single_us
from bench.rest import Rest, ottla
from ottla.dmqp.frame import HEADER, HEADER_BYTES, Method, Status, encode

PAYLOAD = b"x" * 100
ROUND_TRIPS = 3_000
CLIENTS = 8
AHEAD = 64
PIPELINED = 20_000
ROUNDS = 3


class Shard:
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> None:
        self._socket.sendall(request)
        self._skip(1)

    def stream(self, request: bytes, count: int) -> None:
        """Send this many requests, some of them pipelined."""
        for _ in range(count // AHEAD):
            self._socket.sendall(request * AHEAD)
            self._skip(AHEAD)

    def _skip(self, count: int) -> None:
        for _ in range(count):
            _, length, _, status = HEADER.unpack(self._read(HEADER_BYTES))
            assert status == Status.OK
            if length:
                self._read(length)

    def _read(self, size: int) -> bytes:
        content = self._socket.recv(size, socket.MSG_WAITALL)
        assert len(content) == size
        return content


PUSH = encode(0, Method.PUSH, 0, PAYLOAD)
POP = encode(0, Method.POP, 0)


def round_trips_us(port: int, request: bytes) -> list[float]:
    shard = Shard(port)
    taken = []
    for _ in range(ROUND_TRIPS):
        began = time.perf_counter_ns()
        shard.ask(request)
        taken.append((time.perf_counter_ns() - began) / 1000)
    return sorted(taken)


def _one_of_many(port: int, request: bytes, begin: object) -> None:
    shard = Shard(port)
    begin.wait()  # type: ignore[attr-defined]
    for _ in range(ROUND_TRIPS):
        shard.ask(request)


def rate_of_many(port: int, request: bytes) -> float:
    begin = multiprocessing.Barrier(CLIENTS + 1)
    clients = [multiprocessing.Process(target=_one_of_many, args=(port, request, begin)) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    begin.wait()
    began = time.perf_counter()
    for client in clients:
        client.join()
    return CLIENTS * ROUND_TRIPS / (time.perf_counter() - began)


def rate_pipelined(port: int, request: bytes) -> float:
    shard = Shard(port)
    began = time.perf_counter()
    shard.stream(request, PIPELINED)
    return (PIPELINED // AHEAD) * AHEAD / (time.perf_counter() - began)


def rounds(measure: Callable[[int, bytes], float], port: int) -> tuple[float, float]:
    """Push, then pop what was pushed: the median of some rounds."""
    found = [(measure(port, PUSH), measure(port, POP)) for _ in range(ROUNDS)]
    return median(push for push, _ in found), median(pop for _, pop in found)


def rows() -> Iterator[Row]:
    frame = produce_frame()
    with tempfile.TemporaryDirectory() as folder, ottla(Path(folder)) as ports:
        rest = Rest(ports.http)
        rest.ask("POST", "/v1/topics", b'{"name":"bench"}')
        rest.ask("POST", "/v1/topics", b'{"name":"queue"}')
        exposed = msgspec.json.decode(rest.ask("POST", "/v1/dmqp/queue", b"{}"))
        [port] = [shard["port"] for shard in exposed["shards"]]
        kafka_us = median(single_us(connect(ports.kafka), frame, ROUND_TRIPS))
        push, pop = rounds(lambda port, request: percentile(round_trips_us(port, request), 0.5), port)
        yield against("PUSH 100 B, p50, against a Kafka produce request", push, kafka_us)
        yield against("POP 100 B, p50, against a Kafka produce request", pop, kafka_us)
        one_push, one_pop = 1e6 / push, 1e6 / pop
        push, pop = rounds(rate_of_many, port)
        yield speed(f"PUSH round trips, {CLIENTS} clients, against one", push / 1000, one_push / 1000, "k/s")
        yield speed(f"POP round trips, {CLIENTS} clients, against one", pop / 1000, one_pop / 1000, "k/s")
        push, pop = rounds(rate_pipelined, port)
        yield speed(f"PUSH, {AHEAD} ahead, against one by one", push / 1000, one_push / 1000, "k/s")
        yield speed(f"POP, {AHEAD} ahead, against one by one", pop / 1000, one_pop / 1000, "k/s")
