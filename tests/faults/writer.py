"""A writer that reports its actions, so that its parent can check them after the kill."""

from __future__ import annotations

import base64
import json
import threading
from typing import TYPE_CHECKING

from ottla.core.clock import ManualClock
from ottla.core.ids import TopicPartition
from ottla.records.control import EndMarker
from ottla.storage.config import LogConfig
from ottla.storage.files import remove_deleted
from ottla.storage.folder.data_dir import DataDir
from ottla.storage.retention import delete_expired
from ottla.storage.truncation import truncate_to

from .making import NOW, Producer, batch

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    from ottla.storage.flushing import Flush
    from ottla.storage.partition_log import PartitionLog

CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=400, retention_bytes=12_000, retention_ms=-1)
PARTITIONS = [TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("jobs", 0)]
PLAIN, IDEMPOTENT, TRANSACTIONAL = -1, 7, 8


class Writer:
    weights = (300, 12, 20, 8, 4, 4, 3, 1, 1)
    """Weights of the actions in `go_on`."""

    def __init__(
        self,
        folder: Path,
        report: Callable[[bytes], object],
        config: LogConfig = CONFIG,
        kind: type[DataDir] = DataDir,
    ) -> None:
        self.folder = folder
        self.kind = kind
        self.config = config
        self.report = report
        self.flushes: list[tuple[PartitionLog, Flush, threading.Thread]] = []
        self.open()

    def open(self) -> None:
        self.data_dir = self.kind(self.folder, ManualClock())
        for doomed in self.data_dir.deleted_folders():
            self.remove(doomed)
        for at in PARTITIONS:
            self.data_dir.open_partition(at, self.config)

    def remove(self, doomed: Path) -> None:
        remove_deleted(doomed)

    def say(self, at: TopicPartition, **event: object) -> None:
        self.report(json.dumps({"at": str(at), **event}).encode() + b"\n")

    def append(self, at: TopicPartition, value: bytes, count: int, producer_id: int, leader_epoch: int = 0) -> None:
        log = self.data_dir.logs[at]
        made = batch(value, count=count, by=next_of(log, producer_id))
        self.say(at, about="append", data=base64.b64encode(made).decode())
        appended = log.append(made, leader_epoch)
        assert not appended.is_duplicate
        self.say(at, did="append", base=appended.base_offset, last=appended.last_offset)

    def end_transaction(self, at: TopicPartition, *, is_commit: bool) -> None:
        log = self.data_dir.logs[at]
        self.say(at, about="append")
        appended = log.append_end_marker(TRANSACTIONAL, 0, EndMarker(is_commit, 3))
        self.say(at, did="append", base=appended.base_offset, last=appended.last_offset)

    def truncate(self, at: TopicPartition, offset: int) -> None:
        log = self.data_dir.logs[at]
        self.finish_flushes()
        self.say(at, about="truncate", offset=offset)
        truncate_to(log, offset)
        self.say(at, did="truncate", next=log.next_offset)

    def raise_start(self, at: TopicPartition, offset: int) -> None:
        self.finish_flushes()
        self.say(at, about="start")
        self.data_dir.logs[at].raise_start(offset)
        self.data_dir.logs[at].flush()
        self.data_dir.checkpoints.write()
        self.say(at, did="start", offset=offset)

    def expire(self, at: TopicPartition) -> None:
        log = self.data_dir.logs[at]
        self.say(at, about="start")
        doomed = delete_expired(log, NOW)
        self.say(at, did="start", offset=log.start_offset)
        for path in doomed:
            self.remove(path)

    def delete(self, at: TopicPartition) -> None:
        self.finish_flushes()
        self.say(at, about="delete")
        deleted = self.data_dir.delete_partitions([at])
        self.say(at, did="delete")
        for doomed in deleted:
            self.remove(doomed)
        self.data_dir.open_partition(at, self.config)

    def begin_flush(self, at: TopicPartition) -> None:
        log = self.data_dir.logs[at]
        flush = log.begin_flush()
        if flush is not None:
            thread = threading.Thread(target=flush.run)
            thread.start()
            self.flushes.append((log, flush, thread))

    def finish_flushes(self) -> None:
        for log, flush, thread in self.flushes:
            thread.join()
            log.finish_flush(flush)
        self.flushes.clear()

    def reopen(self) -> None:
        self.finish_flushes()
        self.data_dir.close()
        self.open()

    def go_on(self, chance: random.Random) -> None:
        """Do one random action, mostly an append."""
        at = chance.choice(PARTITIONS)
        log = self.data_dir.logs[at]
        offset = chance.randint(log.start_offset, log.next_offset)
        match chance.choices(range(9), self.weights)[0]:
            case 0:
                value = chance.randbytes(chance.choice((1, 40, 300, 650)))
                self.append(at, value, chance.randint(1, 4), chance.choice((PLAIN, IDEMPOTENT, TRANSACTIONAL)))
            case 1:
                self.end_transaction(at, is_commit=chance.random() < 0.5)
            case 2:
                self.begin_flush(at)
            case 3:
                self.finish_flushes()
            case 4:
                self.expire(at)
            case 5:
                self.data_dir.checkpoints.write()
            case 6:
                self.raise_start(at, offset)
            case 7:
                self.truncate(at, offset)
            case 8:
                chance.choice((self.reopen, lambda: self.delete(at)))()

    def go_on_for_ever(self, chance: random.Random) -> None:
        while True:
            self.go_on(chance)


def next_of(log: PartitionLog, producer_id: int) -> Producer:
    """A producer's next epoch and sequence, according to the log."""
    if producer_id == PLAIN:
        return Producer()
    known = log.producers.producers.get(producer_id)
    sequence = known.batches[-1].last_sequence + 1 if known and known.batches else 0
    return Producer(producer_id, 0, sequence, producer_id == TRANSACTIONAL)


def follow_script(writer: Writer) -> None:
    """Every modifying action once, in order."""
    first, second, _ = PARTITIONS
    for number in range(3):
        writer.append(first, b"%d" % number * 300, 2, IDEMPOTENT)
    writer.data_dir.logs[first].flush()
    writer.data_dir.checkpoints.write()
    for number in range(4):
        writer.append(first, b"%d" % number * 700, 1, (PLAIN, IDEMPOTENT)[number % 2], leader_epoch=number // 3)
    writer.append(second, b"open", 2, TRANSACTIONAL)
    writer.end_transaction(second, is_commit=False)
    writer.append(second, b"open" * 400, 1, TRANSACTIONAL)
    writer.append(second, b"open" * 400, 1, IDEMPOTENT)
    writer.end_transaction(second, is_commit=False)
    writer.begin_flush(second)
    writer.finish_flushes()
    writer.truncate(second, 3)
    writer.append(second, b"instead", 1, IDEMPOTENT)
    writer.raise_start(first, 4)
    for number in range(5):
        writer.append(first, b"%d" % number * 1200, 2, IDEMPOTENT)
    writer.expire(first)
    writer.truncate(first, writer.data_dir.logs[first].next_offset - 7)
    writer.append(first, b"instead", 1, PLAIN)
    writer.delete(second)
    writer.append(second, b"born again", 1, IDEMPOTENT)
    writer.reopen()
    writer.append(first, b"after", 1, PLAIN)
    writer.append(second, b"after", 1, IDEMPOTENT)
    writer.data_dir.logs[first].flush()
    writer.data_dir.close()
