"""Finds committed records in a partition's files, without its broker.

Batches of transactions are marked in their headers, and a control batch of the producer ends a transaction. Only
headers are read.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.client.consumer.transactions import without_aborted
from ottla.records.control import read_end_marker
from ottla.spark.reader.log_files import headers
from ottla.wire.messages.fetch import AbortedTransaction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.spark.reader.log_files import PartitionFiles, SegmentFile


@dataclass(frozen=True, slots=True)
class Aborted:
    """An aborted transaction, from its first record to its abort marker."""

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class Transactions:
    stable_until: int
    """The last stable offset: the start of the oldest open transaction, or the log end offset."""
    aborted: tuple[Aborted, ...]


def transactions_in(files: PartitionFiles) -> Transactions:
    under_way: dict[int, int] = {}
    aborted: list[Aborted] = []
    for segment in files.segments:
        for header, position in headers(segment):
            if header.last_offset >= files.end:
                break
            if not header.is_control:
                if header.is_transactional:
                    under_way.setdefault(header.producer_id, header.base_offset)
                continue
            is_commit = _is_commit(segment, position, header.size)
            first = None if is_commit is None else under_way.pop(header.producer_id, None)
            if first is not None and not is_commit:
                aborted.append(Aborted(header.producer_id, first, header.base_offset))
    return Transactions(min(under_way.values(), default=files.end), tuple(aborted))


def _is_commit(segment: SegmentFile, position: int, size: int) -> bool | None:
    """The end marker of a control batch; None for another kind."""
    with Path(segment.path).open("rb") as file:
        marker = read_end_marker(os.pread(file.fileno(), size, position))
    return None if marker is None else marker.is_commit


def committed(batches: memoryview, from_offset: int, aborted: Iterable[Aborted]) -> memoryview:
    """These batches without aborted ones; the first contains this offset."""
    still = (each for each in aborted if each.last_offset >= from_offset)
    return without_aborted(
        batches, [AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset) for each in still]
    )
