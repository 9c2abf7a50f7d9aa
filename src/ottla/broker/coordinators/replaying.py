"""Reads back the records that a coordinator has written to its log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.core.errors import CorruptMessage, ErrorCode
from ottla.records.batch import read_header
from ottla.storage.folder.checkpoints import read_missing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.partition import Partition
    from ottla.core.errors import ApiError
    from ottla.records.batch import BatchHeader

_logger: Final = logging.getLogger(__name__)

_BYTES_AT_ONCE: Final = 1 << 20


def batches_of(partition: Partition) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch of the partition, in order. Raises CorruptMessage if a batch is damaged, or the end of the log is
    missing.
    """
    missing = read_missing(partition.log.folder)
    if missing is not None:
        raise CorruptMessage(f"records {missing[0]} to {missing[1] - 1} are missing: the log was truncated")
    offset = partition.log.start_offset
    while data := partition.log.read(offset, _BYTES_AT_ONCE):
        batches = memoryview(data)
        at = 0
        while at < len(batches):
            header = read_header(batches, at)
            yield header, batches[at : at + header.size]
            at += header.size
            offset = header.next_offset


class Damaged:
    """Unreadable partitions of an internal topic, in a standalone broker.

    All other topics are served. Requests for state in such a partition get an error, and nothing is written to the
    partition until it is repaired or restored: a coordinator that continued with part of the state would lose the rest.
    """

    def __init__(self) -> None:
        self._why: dict[int, str] = {}

    def __bool__(self) -> bool:
        return bool(self._why)

    def add(self, partition: Partition, found: ApiError) -> None:
        self._why[partition.at.partition] = str(found)
        _logger.critical(
            "%s: damaged, its contents are not available: %s. Stop the broker and restore its folder from a backup, or "
            "run: ottla log repair %s (drops the damaged batches, keeps a copy of them, and reports what was lost)",
            *(partition.at, found, partition.at),
        )
        if partition.is_open:
            partition.log.take_offline(f"damaged: {found}")

    def error_for(self, index: int) -> ErrorCode:
        """The error for requests about this partition's state; NONE if it could be read."""
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if index in self._why else ErrorCode.NONE

    def clear(self) -> None:
        """Handle the deletion of the topic."""
        self._why.clear()
