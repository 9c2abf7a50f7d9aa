"""The partition log against the bare system calls that it cannot do without."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.report import Row, against, percentile, speed
from ottla.core.clock import SystemClock
from ottla.core.ids import TopicPartition
from ottla.records.encode import BatchBuilder
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import DataDir
from ottla.storage.partition_log import PartitionLog

AT = TopicPartition("bench", 0)
APPENDS = 60_000
READ_BYTES = 1 << 20
SMALL_PARTITION = 16 << 20
LARGE_PARTITION = 1 << 30
BUFFERS = 1024


def batch_of(size: int) -> bytearray:
    """A batch of one record that takes this many bytes, give or take the length of a number."""
    builder = BatchBuilder()
    builder.append(SystemClock().now_ms(), b"key", b"v" * (size - 75))
    return builder.build()


@contextmanager
def open_log(folder: Path) -> Iterator[PartitionLog]:
    with DataDir(folder, SystemClock()) as data_dir:
        yield data_dir.open_partition(AT, LogConfig())


def append_rows(folder: Path) -> Iterator[Row]:
    batches = [batch_of(1024) for _ in range(BUFFERS)]
    bare_ns, ours_ns = [], []
    clock = time.perf_counter_ns
    fd = os.open(folder / "bare", os.O_RDWR | os.O_CREAT)
    with open_log(folder / "append") as log:
        for number in range(APPENDS):
            batch = batches[number % BUFFERS]
            start = clock()
            os.write(fd, batch)
            middle = clock()
            log.append(batch)
            end = clock()
            bare_ns.append(middle - start)
            ours_ns.append(end - middle)
    os.close(fd)
    bare_ns.sort()
    ours_ns.sort()
    for share, goal in ((0.5, 2.5), (0.99, None), (0.999, None)):
        name = f"append a 1 KiB batch, p{share * 100:g}, against os.write"
        ours, bare = percentile(ours_ns, share) / 1000, percentile(bare_ns, share) / 1000
        yield against(name, ours, bare, at_most=goal)


def read_rows(folder: Path) -> Iterator[Row]:
    for size in (1024, 16 * 1024):
        with open_log(folder / f"read-{size}") as log:
            batch = batch_of(size)
            for _ in range((128 << 20) // size):
                log.append(bytearray(batch))
            ours, bare = interleaved_reads(log, rounds=8)
            name = f"sequential 1 MiB reads, {size // 1024} KiB batches, against os.pread"
            yield speed(name, ours, bare, "GB/s", at_least=0.9)
        with open_log(folder / f"read-{size}") as log:
            ours, bare = interleaved_reads(log, rounds=1)
            yield speed(f"{name}, first time after a start (checksums checked)", ours, bare, "GB/s")


def interleaved_reads(log: PartitionLog, rounds: int) -> tuple[float, float]:
    """GB/s of reading the whole log, ours and with bare reads of the same size, in turns."""
    path = log.segments[0].path
    total = log.size
    record_bytes = total // log.next_offset
    ours_s = bare_s = 0.0
    for _ in range(rounds):
        start = time.perf_counter()
        offset = log.start_offset
        read = 0
        while data := log.read(offset, READ_BYTES):
            read += len(data)
            offset += len(data) // record_bytes
        middle = time.perf_counter()
        assert read == total
        fd = os.open(path, os.O_RDONLY)
        for position in range(0, total, READ_BYTES):
            os.pread(fd, READ_BYTES, position)
        os.close(fd)
        ours_s += middle - start
        bare_s += time.perf_counter() - middle
    return rounds * total / ours_s / 1e9, rounds * total / bare_s / 1e9


def open_rows(folder: Path) -> Iterator[Row]:
    times_ms = {}
    for size in (SMALL_PARTITION, LARGE_PARTITION):
        with open_log(folder / f"open-{size}") as log:
            batch = batch_of(16 * 1024)
            while log.next_offset * len(batch) < size:
                log.append(bytearray(batch))
        start = time.perf_counter()
        data_dir = DataDir(folder / f"open-{size}", SystemClock())
        log = data_dir.open_partition(AT, LogConfig())
        times_ms[size] = (time.perf_counter() - start) * 1000
        assert log.next_offset * 16 * 1024 >= size
        data_dir.close()
    large, small = times_ms[LARGE_PARTITION], times_ms[SMALL_PARTITION]
    yield Row(
        what="open a 1 GiB partition after a clean stop, against a 16 MiB one",
        ours=f"{large:.2f} ms",
        theirs=f"{small:.2f} ms",
        ratio=large / small,
        goal="< 50 ms",
        is_reached=large < 50,
    )


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
        yield from append_rows(Path(folder))
        yield from read_rows(Path(folder))
        yield from open_rows(Path(folder))
