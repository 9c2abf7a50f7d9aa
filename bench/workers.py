"""Workers on one machine: two of them against one, under the same producers, each a process of its own.

All brokers run at once and are measured in turns, so that whatever else the machine does meets all of them. The
producers need the same cores: how much a second worker gains depends on how many there are.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, Self

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.report import Row, against, percentile, speed

if TYPE_CHECKING:
    from multiprocessing.pool import Pool

PRODUCERS = 2
PARTITIONS = 8
TOPIC = "bench"
ROUNDS = 6
ALONE = 500
START_S = 120


class Load(NamedTuple):
    what: str
    size: int
    count: int
    settings: dict[str, int]


LOADS = (
    Load("1000 B records, batched", 1000, 60_000, {"linger.ms": 5}),
    Load("100 B records, each a request", 100, 5_000, {"linger.ms": 0, "batch.num.messages": 1}),
)


class Broker:
    """One without a supervisor, or some workers."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._folder = Path(tempfile.mkdtemp(prefix="bench-workers-"))

    def __enter__(self) -> Self:
        ready = self._folder / "ready.json"
        options = ["--port", "0", "--http-port", "-1", "--data-dir", str(self._folder / "data"), "--ready-file", ready]
        command = [sys.executable, "-m", "ottla", "serve", *options, "--workers", str(self._workers)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline_s = time.monotonic() + START_S
        while not ready.exists():
            if time.monotonic() > deadline_s:
                raise TimeoutError("the broker did not start")
            time.sleep(0.01)
        self.bootstrap: str = json.loads(ready.read_bytes())["kafka"]
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(START_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)
        shutil.rmtree(self._folder, ignore_errors=True)


def produce(bootstrap: str, load: Load) -> None:
    """In a process of its own."""
    sender = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, **load.settings})
    value = os.urandom(load.size)
    failed: list[object] = []
    for number in range(load.count):
        while True:
            try:
                sender.produce(
                    TOPIC, value, partition=number % PARTITIONS, on_delivery=lambda e, _: e and failed.append(e)
                )
                break
            except BufferError:
                sender.poll(0.01)
        sender.poll(0)
    assert sender.flush(120) == 0
    assert not failed, failed[0]


def records_per_s(broker: Broker, load: Load, producers: Pool) -> float:
    began = time.perf_counter()
    producers.starmap(produce, [(broker.bootstrap, load)] * PRODUCERS)
    return PRODUCERS * load.count / (time.perf_counter() - began)


def _medians(brokers: list[Broker], load: Load, producers: Pool) -> list[float]:
    """Of each broker, in turns of changing order: what one leaves to be written to the disk meets the next."""
    speeds: dict[Broker, list[float]] = {each: [] for each in brokers}
    for each in brokers:
        records_per_s(each, load, producers)
    for number in range(ROUNDS):
        first = number % len(brokers)
        for each in (*brokers[first:], *brokers[:first]):
            speeds[each].append(records_per_s(each, load, producers))
    return [median(speeds[each]) for each in brokers]


def waits_us(broker: Broker) -> list[float]:
    """One record after the other, each waited for."""
    sender = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "linger.ms": 0})
    waits = []
    for number in range(ALONE):
        began = time.perf_counter()
        sender.produce(TOPIC, b"v" * 100, partition=number % PARTITIONS)
        assert sender.flush(30) == 0
        waits.append((time.perf_counter() - began) * 1e6)
    return sorted(waits)


def rows() -> list[Row]:
    with ExitStack() as stack:
        producers = stack.enter_context(multiprocessing.get_context("spawn").Pool(PRODUCERS))
        brokers = [stack.enter_context(Broker(workers)) for workers in (0, 1, 2)]
        measured = [[each / 1e3 for each in _medians(brokers, load, producers)] for load in LOADS]
        waits = [[waits_us(each) for each in brokers] for _ in range(ROUNDS)]
        p50 = [median(percentile(each, 0.5) for each in side) for side in zip(*waits, strict=True)]
    return [
        *(
            speed(f"{load.what}, 2 workers against 1", speeds[2], speeds[1], "k/s")
            for load, speeds in zip(LOADS, measured, strict=True)
        ),
        *(
            speed(f"{load.what}, 1 worker against a broker alone", speeds[1], speeds[0], "k/s")
            for load, speeds in zip(LOADS, measured, strict=True)
        ),
        against("one record at a time, p50, 2 workers against 1", p50[2], p50[1]),
        against("one record at a time, p50, 1 worker against a broker alone", p50[1], p50[0]),
    ]
