"""Produce requests from a raw socket, against a server on the same loop that does nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.log import batch_of
from bench.report import Row, against, percentile, speed
from ottla.wire.codec import encode_request
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

SINGLE = 20_000
PIPELINED = 60_000
IN_FLIGHT = 32
ROUNDS = 5


def produce_frame() -> bytes:
    request = ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=(
            TopicProduceData(
                name="bench", partition_data=(PartitionProduceData(index=0, records=memoryview(batch_of(1024))),)
            ),
        ),
    )
    return b"".join(encode_request(request, 9, 1, "bench"))


def exchange(connection: socket.socket, frame: bytes) -> bytes:
    connection.sendall(frame)
    return read_frame(connection)


def read_frame(connection: socket.socket) -> bytes:
    head = connection.recv(4, socket.MSG_WAITALL)
    return head + connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)


@contextmanager
def ottla(folder: Path, *options: str, port: tuple[str, ...] = ("--port", "0")) -> Iterator[int]:
    ready = folder / "ready.json"
    command = [sys.executable, "-m", "ottla", "serve", *port, "--http-port", "-1", *options]
    process = subprocess.Popen(
        [*command, "--data-dir", str(folder / "data"), "--ready-file", str(ready)], stdout=subprocess.DEVNULL
    )
    try:
        while not ready.exists():
            time.sleep(0.005)
        yield int(msgspec.json.decode(ready.read_bytes())["kafka"].rpartition(":")[2])
    finally:
        process.terminate()
        process.wait()


@contextmanager
def bare_process(module: str, *arguments: object) -> Iterator[tuple[int, int]]:
    """A server to compare with, in a separate process; its port and pid."""
    command = [sys.executable, "-m", f"bench.{module}", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline()), process.pid
    finally:
        process.terminate()
        process.wait()


@contextmanager
def bare(module: str, *arguments: object) -> Iterator[int]:
    with bare_process(module, *arguments) as (port, _):
        yield port


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def single_us(connection: socket.socket, frame: bytes, count: int) -> list[float]:
    clock = time.perf_counter_ns
    times = []
    for _ in range(count):
        start = clock()
        exchange(connection, frame)
        times.append((clock() - start) / 1000)
    return times


def pipelined_per_second(connection: socket.socket, frame: bytes, answer_bytes: int, count: int) -> float:
    """Requests per second with this many in flight: a window is sent as soon as one has been answered."""
    start = time.perf_counter()
    window = frame * IN_FLIGHT
    for _ in range(count // IN_FLIGHT):
        connection.sendall(window)
        left = answer_bytes * IN_FLIGHT
        while left:
            left -= len(connection.recv(left))
    return count / (time.perf_counter() - start)


def rows() -> Iterator[Row]:
    frame = produce_frame()
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder, ottla(Path(folder)) as port:
        ours = connect(port)
        topic = MetadataRequest(topics=(MetadataRequestTopic(name="bench"),))
        exchange(ours, b"".join(encode_request(topic, 9, 1, "bench")))
        answer = exchange(ours, frame)
        with bare("do_nothing", answer.hex()) as bare_port:
            theirs = connect(bare_port)
            our_us: list[float] = []
            bare_us: list[float] = []
            for _ in range(ROUNDS):
                our_us += single_us(ours, frame, SINGLE // ROUNDS)
                bare_us += single_us(theirs, frame, SINGLE // ROUNDS)
            our_us.sort()
            bare_us.sort()
            for share, goal in ((0.5, 1.15), (0.99, None)):
                name = f"one produce of 1 KiB, raw socket, p{share * 100:g}, against a server that does nothing"
                yield against(name, percentile(our_us, share), percentile(bare_us, share), at_most=goal)
            rates = [
                (
                    pipelined_per_second(ours, frame, len(answer), PIPELINED // ROUNDS),
                    pipelined_per_second(theirs, frame, len(answer), PIPELINED // ROUNDS),
                )
                for _ in range(ROUNDS)
            ]
            our_rate, bare_rate = (sorted(column)[ROUNDS // 2] for column in zip(*rates, strict=True))
            name = f"produce of 1 KiB, raw socket, {IN_FLIGHT} in flight, against a server that does nothing"
            yield speed(name, our_rate / 1000, bare_rate / 1000, "k/s", at_least=0.5)
