"""Fetches of 1 MiB over the Kafka port, against a bare loop that sends the same bytes of the same file."""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.log import batch_of
from bench.report import Row, speed
from bench.requests import bare, connect, exchange, ottla
from ottla.wire.codec import encode_request
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPIC = "fetches"
FILE_BYTES = 128 << 20
BATCH_BYTES = 16 * 1024
FETCH_BYTES = 1 << 20
ROUNDS = 15


def fill(connection: socket.socket) -> int:
    """Produce the records to fetch, one per batch; returns their number."""
    wanted = MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),))
    exchange(connection, b"".join(encode_request(wanted, 9, 1, "bench")))
    data = PartitionProduceData(index=0, records=memoryview(batch_of(BATCH_BYTES)))
    request = ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=(TopicProduceData(name=TOPIC, partition_data=(data,)),)
    )
    frame = b"".join(encode_request(request, 9, 1, "bench"))
    count = FILE_BYTES // BATCH_BYTES
    for _ in range(count):
        exchange(connection, frame)
    return count


def fetch_frame(offset: int) -> bytes:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
    topic = FetchTopic(topic=TOPIC, partitions=(wanted,))
    request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=(topic,))
    return b"".join(encode_request(request, 12, 1, "bench"))


def gigabytes_per_second(connection: socket.socket, frames: list[bytes]) -> float:
    buffer = memoryview(bytearray(2 * FETCH_BYTES))
    received = 0
    start = time.perf_counter()
    for frame in frames:
        connection.sendall(frame)
        connection.recv_into(buffer, 4, socket.MSG_WAITALL)
        size = int.from_bytes(buffer[:4], "big")
        received += connection.recv_into(buffer, size, socket.MSG_WAITALL)
    return received / (time.perf_counter() - start) / 1e9


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder, ottla(Path(folder)) as port:
        ours = connect(port)
        count = fill(ours)
        [segment] = (Path(folder) / "data" / f"{TOPIC}-0").glob("*.log")
        batches = FETCH_BYTES // (segment.stat().st_size // count)
        frames = [fetch_frame(offset) for offset in range(0, count - batches, batches)]
        answer_bytes = len(exchange(ours, frames[0])) - 4
        with (
            bare("bare_sender", "writelines", segment, answer_bytes) as writelines,
            bare("bare_sender", "sendfile", segment, answer_bytes) as sendfile,
        ):
            sides = [ours, connect(writelines), connect(sendfile)]
            rates = [[gigabytes_per_second(side, frames) for side in sides] for _ in range(ROUNDS)]
    our_rate, *bare_rates = (sorted(column)[ROUNDS // 2] for column in zip(*rates, strict=True))
    for how, bare_rate in zip(("writelines on uvloop", "sendfile on asyncio"), bare_rates, strict=True):
        name = f"fetches of 1 MiB by one consumer, raw socket, against a bare loop: {how}"
        yield speed(name, our_rate, bare_rate, "GB/s", at_least=0.7)
