"""Reading back what a coordinator has written to its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.records.batch import read_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.broker.partition import Partition
    from ottla.records.batch import BatchHeader

_BYTES_AT_ONCE: Final = 1 << 20


def batches_of(partition: Partition) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch of the partition, in order."""
    offset = partition.log.start_offset
    while data := partition.log.read(offset, _BYTES_AT_ONCE):
        batches = memoryview(data)
        at = 0
        while at < len(batches):
            header = read_header(batches, at)
            yield header, batches[at : at + header.size]
            at += header.size
            offset = header.next_offset
