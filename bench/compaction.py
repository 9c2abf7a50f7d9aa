"""Compaction: speed, cost, and its effect on clients."""

from __future__ import annotations

import resource
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.report import Row, against, percentile
from bench.requests import connect, exchange, ottla, produce_frame
from ottla import Admin
from ottla.client.admin.configs import ConfigResource
from ottla.core.clock import SystemClock
from ottla.core.ids import TopicPartition
from ottla.records.compaction import TombstoneRule
from ottla.records.encode import BatchBuilder
from ottla.storage.config import LogConfig
from ottla.storage.folder.closing import close_log
from ottla.storage.folder.data_dir import DataDir
from ottla.storage.partition_log import PartitionLog
from ottla.storage.recovery import open_log
from ottla.storage.rewrites.compaction import Budget, Compaction, CompactionRule, find_dirty
from ottla.storage.rewrites.rewriting import put_in_place
from ottla.storage.segment_files.open_files import OpenFiles

RECORDS_PER_BATCH = 500
BATCHES = 1000
BATCHES_BESIDE = 4000
KEYS = 100_000
VALUE = bytes(1000)
LEAST_MB_PER_S = 100
ALONE_REQUESTS = 20_000
PATIENCE_S = 120
_OFTEN = "--set=broker.compaction_check_interval_ms=100"
RULE = CompactionRule(0.0, 0, 1 << 60, 86_400_000)


CONFIG = LogConfig(cleanup_policy="compact", segment_bytes=128 << 20)


def opened(folder: Path) -> PartitionLog:
    return open_log(folder, CONFIG, SystemClock(), OpenFiles())


def fill(log: PartitionLog, batches: int) -> None:
    number = 0
    for _ in range(batches):
        builder = BatchBuilder()
        for _ in range(RECORDS_PER_BATCH):
            builder.append(1_700_000_000_000, b"key-%09d" % (number * 7919 % KEYS), VALUE)
            number += 1
        log.append(builder.build())
    log.roll()


def compact(folder: Path) -> tuple[int, float, float]:
    """Bytes, seconds, and CPU seconds."""
    log = opened(folder)
    size = log.size
    began, began_cpu = time.perf_counter(), time.process_time()
    dirty = find_dirty(log, 0, log.next_offset, RULE, 1 << 60)
    compaction = Compaction(log, dirty, TombstoneRule(1_700_000_000_000, 86_400_000), Budget(128 << 20))
    compaction.note_keys()
    for rewrite in compaction.rewrites():
        rewrite.run()
        put_in_place(log, rewrite)
    elapsed, processor = time.perf_counter() - began, time.process_time() - began_cpu
    close_log(log)
    return size, elapsed, processor


def speed_rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "t-0"
        log = opened(folder)
        fill(log, BATCHES)
        close_log(log)
        filled_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size, elapsed, processor = compact(folder)
        grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - filled_kib) / 1024
    rate = size / processor / 1e6
    yield Row(
        what=f"compact {size / 1e9:.2f} GB of 1 KiB records, {KEYS:,} keys, per second of one core",
        ours=f"{rate:.0f} MB",
        goal=f">= {LEAST_MB_PER_S} MB",
        is_reached=rate >= LEAST_MB_PER_S,
    )
    yield Row(what="the same, with the disk", ours=f"{size / elapsed * 60 / 1e9:.0f} GB/min")
    yield Row(what="the same, memory", ours=f"{grown_mib:.0f} MiB")


def produce_us(connection: socket.socket, frame: bytes) -> float:
    began = time.perf_counter_ns()
    exchange(connection, frame)
    return (time.perf_counter_ns() - began) / 1000


def beside_rows() -> Iterator[Row]:
    """Requests to a broker that has gigabytes to compact, against the same with nothing to do."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with DataDir(folder / "data", SystemClock()) as data_dir:
            log = data_dir.open_partition(TopicPartition("t", 0), CONFIG)
            fill(log, BATCHES_BESIDE)
            size = log.size
        with ottla(folder, _OFTEN) as port, Admin(f"127.0.0.1:{port}") as admin:
            admin.create_topic("bench")
            connection, frame = connect(port), produce_frame()
            alone = sorted(produce_us(connection, frame) for _ in range(ALONE_REQUESTS))
            admin.alter_configs(ConfigResource.topic("t"), {"cleanup.policy": "compact"})
            beside = []
            done = folder / "data" / "cleaner-offset-checkpoint"
            began = time.perf_counter()
            while not done.exists() and time.perf_counter() - began < PATIENCE_S:
                beside += (produce_us(connection, frame) for _ in range(100))
            elapsed = time.perf_counter() - began
            connection.close()
            assert done.exists(), "it was not compacted"
    beside.sort()
    yield against(
        "one Kafka produce beside compaction, p50, against alone", percentile(beside, 0.5), percentile(alone, 0.5)
    )
    p99 = percentile(beside, 0.99), percentile(alone, 0.99)
    yield against("one Kafka produce beside compaction, p99, against alone", *p99, at_most=2)
    yield Row(what="compaction beside those requests", ours=f"{size / elapsed * 60 / 1e9:.0f} GB/min")


def rows() -> Iterator[Row]:
    yield from speed_rows()
    yield from beside_rows()
