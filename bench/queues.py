"""Queues in files: against the Rust crate v_queue, two queues of the Python package index, and the bare disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import litequeue
import persistqueue
from interop.foreign_clients import rust_program

from bench.report import Row, speed
from ottla.queue import Queue

SIZES = {100: "100 B", 1024: "1 KiB"}
COUNT = 50_000
PYTHON_COUNT = 1_000
SYNCED_COUNT = 300
THREADS = 16
ROUNDS = 5
POPPED_TOGETHER = 100

Rates = dict[str, float]


def rates_of_crate(folder: Path, size: int) -> Rates:
    command = [str(rust_program("v-queue")), "bench", str(folder), str(COUNT), str(size)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pushed_s, popped_s = map(float, told.split())
    return {"push": COUNT / pushed_s, "pop": COUNT / popped_s}


def rate(count: int, work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


def repeat(count: int, call: Callable[[], object]) -> Callable[[], None]:
    def work() -> None:
        for _ in range(count):
            call()

    return work


def rates_of_ours(folder: Path, size: int) -> Rates:
    body = b"x" * size
    with Queue(folder, "bench", fsync="never") as queue, queue.consumer("bench") as consumer:
        rates = {
            "push": rate(COUNT, repeat(COUNT, lambda: queue.push(body))),
            "pop": rate(COUNT, repeat(COUNT, consumer.pop)),
        }
        assert consumer.pop() is None
        assert consumer.position.number == COUNT
        rates["push_many"] = rate(COUNT, lambda: queue.push_many([body] * COUNT))
        rates["pop_many"] = rate(COUNT, repeat(COUNT // POPPED_TOGETHER, lambda: consumer.pop_many(POPPED_TOGETHER)))
    return rates


def rates_of_persist_queue(folder: Path, size: int) -> Rates:
    queue = persistqueue.FIFOSQLiteQueue(str(folder), auto_commit=True)
    body = b"x" * size
    rates = {
        "push": rate(PYTHON_COUNT, repeat(PYTHON_COUNT, lambda: queue.put(body))),
        "pop": rate(PYTHON_COUNT, repeat(PYTHON_COUNT, lambda: queue.get(block=False))),
    }
    queue.close()
    return rates


def rates_of_litequeue(folder: Path, size: int) -> Rates:
    folder.mkdir()
    queue = litequeue.LiteQueue(str(folder / "queue.sqlite"))
    body = "x" * size

    def take() -> None:
        message = queue.pop()
        queue.done(message.message_id)

    rates = {
        "push": rate(PYTHON_COUNT, repeat(PYTHON_COUNT, lambda: queue.put(body))),
        "pop": rate(PYTHON_COUNT, repeat(PYTHON_COUNT, take)),
    }
    queue.conn.close()
    return rates


def synced_rates(folder: Path, size: int) -> Rates:
    """Rates of synced writes."""
    body = b"x" * size
    folder.mkdir()
    fd = os.open(folder / "bare", os.O_RDWR | os.O_CREAT)

    def write_and_sync() -> None:
        os.write(fd, body)
        os.fdatasync(fd)

    clock = time.perf_counter
    bare_s, ours_s = [], []
    with Queue(folder, "push", fsync="push") as queue:
        # Alternating, because disk speed varies.
        for _ in range(SYNCED_COUNT):
            start = clock()
            write_and_sync()
            middle = clock()
            queue.push(body)
            bare_s.append(middle - start)
            ours_s.append(clock() - middle)
        rates = {"bare": 1 / median(bare_s), "push": 1 / median(ours_s)}
        push_some = repeat(SYNCED_COUNT, lambda: queue.push(body))
        rates["threads"] = rate(SYNCED_COUNT * THREADS, lambda: in_threads(push_some))
    os.close(fd)
    with Queue(folder, "batch", fsync="batch") as queue:
        rates["batch"] = rate(COUNT, repeat(COUNT, lambda: queue.push(body)))
    return rates


def in_threads(work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def rounds(folder: Path, size: int, *sides: Callable[[Path, int], Rates]) -> list[Rates]:
    """The sides by turns, each in a fresh folder; the median of each rate."""
    found: list[list[Rates]] = [[] for _ in sides]
    for _ in range(ROUNDS):
        for side, rates in zip(sides, found, strict=True):
            rates.append(side(folder / "side", size))
            shutil.rmtree(folder / "side")
    return [{what: median(one[what] for one in rates) for what in rates[0]} for rates in found]


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="bench-queues-", dir=Path.cwd()) as folder:
        for size, told in SIZES.items():
            sides = (rates_of_ours, rates_of_crate, rates_of_persist_queue, rates_of_litequeue, synced_rates)
            ours, crate, persist, lite, synced = rounds(Path(folder), size, *sides)
            for what in ("push", "pop"):
                yield in_thousands(f"{what} {told}, no fsync, against the Rust crate", ours[what], crate[what], 0.5)
                yield in_thousands(f"{what} {told}, no fsync, against persist-queue", ours[what], persist[what], 10)
                yield in_thousands(f"{what} {told}, no fsync, against litequeue", ours[what], lite[what], 10)
            yield in_thousands(f"push_many {told}, no fsync, against litequeue", ours["push_many"], lite["push"], 10)
            yield in_thousands(f"push_many {told}, no fsync, against the Rust crate", ours["push_many"], crate["push"])
            yield in_thousands(f"pop_many {told}, no fsync, against the Rust crate", ours["pop_many"], crate["pop"])
            disk = f"push {told}, fsync per push"
            yield in_thousands(f"{disk}, against write and fdatasync", synced["push"], synced["bare"], 0.8)
            yield in_thousands(f"{disk}, {THREADS} threads, against the same", synced["threads"], synced["bare"], 1)
            yield in_thousands(f"{disk}, against persist-queue", synced["push"], persist["push"])
            row = f"push {told}, fsync per 1000, against the Rust crate without"
            yield in_thousands(row, synced["batch"], crate["push"], 0.5)


def in_thousands(what: str, ours: float, theirs: float, at_least: float | None = None) -> Row:
    return speed(what, ours / 1000, theirs / 1000, "k/s", at_least=at_least)
