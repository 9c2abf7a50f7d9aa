"""What is compared of a log before and after it was opened again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.records.control import EndMarker

from .making import NOW, offset_for_timestamp

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.storage.partition_log import PartitionLog

ABORT = EndMarker(is_commit=False, coordinator_epoch=0)
COMMIT = EndMarker(is_commit=True, coordinator_epoch=0)
INDEXES = (".index", ".timeindex")


def answers(log: PartitionLog) -> list[Any]:
    """All that can be asked of a log."""
    return [
        [bytes(log.read(offset, 1)) for offset in range(log.start_offset, log.next_offset)],
        [offset_for_timestamp(log, at) for at in range(NOW - 12, NOW + 2)],
        log.aborted_transactions(0, 1000),
        log.last_stable_offset,
        log.epochs.entries,
        [segment.newest_timestamp for segment in log.segments],
        {
            number: (
                known.epoch,
                known.batches[-1].last_sequence,
                known.batches[-1].last_offset,
                known.transaction_start,
            )
            for number, known in log.producers.producers.items()
        },
    ]


def contents(folder: Path, *suffixes: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name.endswith(suffixes)}
