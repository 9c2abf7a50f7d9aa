"""Workers on one machine: two of them against one, under the same producers, each in a separate process.

All brokers run at once and are measured in turns, so that whatever else the machine does meets all of them. The
producers need the same cores: how much a second worker gains depends on how many there are. What the busiest process
spends on a record does not: it is the limit where cores are free.
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
COMPRESSED = "compressed"
ROUNDS = 6
ALONE = 500
START_S = 120
_USER_TIME, _SYSTEM_TIME = 11, 12
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Load(NamedTuple):
    what: str
    size: int
    count: int
    settings: dict[str, int]
    topic: str = TOPIC


LOADS = (
    Load("1000 B records, batched", 1000, 60_000, {"linger.ms": 5}),
    Load("100 B records, each a request", 100, 5_000, {"linger.ms": 0, "batch.num.messages": 1}),
    Load("1000 B records that the broker compresses", 1000, 20_000, {"linger.ms": 5}, COMPRESSED),
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
        told = json.loads(ready.read_bytes())
        self.bootstrap: str = told["kafka"]
        self._pids = [told["pid"], *(worker["pid"] for worker in told.get("workers", ()))]
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        topics = [NewTopic(TOPIC, PARTITIONS), NewTopic(COMPRESSED, PARTITIONS, config={"compression.type": "gzip"})]
        for created in admin.create_topics(topics).values():
            created.result(START_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)
        shutil.rmtree(self._folder, ignore_errors=True)

    def cpu_us(self) -> list[float]:
        """Of each process, since it began."""
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split() for pid in self._pids]
        return [(int(stat[_USER_TIME]) + int(stat[_SYSTEM_TIME])) * 1e6 / _TICKS_PER_S for stat in stats]


def produce(bootstrap: str, load: Load) -> None:
    """In a separate process."""
    sender = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, **load.settings})
    value = os.urandom(load.size)
    failed: list[object] = []
    for number in range(load.count):
        while True:
            try:
                sender.produce(
                    load.topic, value, partition=number % PARTITIONS, on_delivery=lambda e, _: e and failed.append(e)
                )
                break
            except BufferError:
                sender.poll(0.01)
        sender.poll(0)
    assert sender.flush(120) == 0
    assert not failed, failed[0]


class Speed(NamedTuple):
    records_per_s: float
    busiest_us: float
    """What the process that was busiest spent on a record."""


def measure(broker: Broker, load: Load, producers: Pool) -> Speed:
    before, began = broker.cpu_us(), time.perf_counter()
    producers.starmap(produce, [(broker.bootstrap, load)] * PRODUCERS)
    took_s, records = time.perf_counter() - began, PRODUCERS * load.count
    spent = [after - earlier for earlier, after in zip(before, broker.cpu_us(), strict=True)]
    return Speed(records / took_s, max(spent) / records)


def _medians(brokers: list[Broker], load: Load, producers: Pool) -> list[Speed]:
    """Of each broker, in turns of changing order: what one leaves to be written to the disk meets the next."""
    speeds: dict[Broker, list[Speed]] = {each: [] for each in brokers}
    for each in brokers:
        measure(each, load, producers)
    for number in range(ROUNDS):
        first = number % len(brokers)
        for each in (*brokers[first:], *brokers[:first]):
            speeds[each].append(measure(each, load, producers))
    return [Speed(*map(median, zip(*speeds[each], strict=True))) for each in brokers]


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
        measured = [(load.what, *_medians(brokers, load, producers)) for load in LOADS]
        waits = [[waits_us(each) for each in brokers] for _ in range(ROUNDS)]
        p50 = [median(percentile(each, 0.5) for each in side) for side in zip(*waits, strict=True)]
    rows = []
    for what, alone, one, two in measured:
        rows += [
            speed(f"{what}, 2 workers against 1", two.records_per_s / 1e3, one.records_per_s / 1e3, "k/s"),
            against(f"{what}, busiest process per record, 2 workers against 1", two.busiest_us, one.busiest_us),
            speed(f"{what}, 1 worker against no workers", one.records_per_s / 1e3, alone.records_per_s / 1e3, "k/s"),
        ]
    return [
        *rows,
        against("one record at a time, p50, 2 workers against 1", p50[2], p50[1]),
        against("one record at a time, p50, 1 worker against no workers", p50[1], p50[0]),
    ]
