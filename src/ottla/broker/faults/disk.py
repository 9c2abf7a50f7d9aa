"""Injected disk errors: failing and full disks."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from ottla.broker.faults.subjects import Subject

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.faults.fault import Fault
    from ottla.broker.partition import Partition
    from ottla.core.ids import TopicPartition
    from ottla.storage.partition_log import PartitionLog


class DiskFaults:
    def __init__(self) -> None:
        self.failing: dict[int, Fault] = {}
        """Injected failures of fsync."""
        self.full: dict[int, Fault] = {}
        """Injected failures of writes."""

    def watch(self, broker: Broker) -> None:
        """Check for faults before each fsync and each write."""
        broker.flusher.disk_error = self._sync_error
        broker.data_dir.when_opened = self._watch_log
        for at, log in broker.data_dir.logs.items():
            self._watch_log(at, log)

    def _watch_log(self, at: TopicPartition, log: PartitionLog) -> None:
        write = log.write

        def watched(batch: bytearray | memoryview, last_offset: int, max_timestamp: int) -> None:
            error = _struck(self.full, at, errno.ENOSPC)
            if error is not None:
                log.refuse_append(error)
            write(batch, last_offset, max_timestamp)

        # Patched on this log only, so that logs without faults have no overhead.
        log.write = watched  # type: ignore[method-assign]

    def _sync_error(self, partition: Partition) -> OSError | None:
        return _struck(self.failing, partition.at, errno.EIO)


def _struck(faults: dict[int, Fault], at: TopicPartition, number: int) -> OSError | None:
    subject = Subject(at.topic, at.partition)
    for fault in tuple(faults.values()):
        if not fault.is_spent and fault.where.covers(subject):
            fault.strike()
            return OSError(number, os.strerror(number))
    return None
