"""Producer state at the end of a log: the newest trusted snapshot, and the batches after it."""

from __future__ import annotations

import logging
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from ottla.records.control import read_end_marker
from ottla.storage.producers.state import NO_TRANSACTION
from ottla.storage.segment_files.segments import reaching

if TYPE_CHECKING:
    from ottla.records.batch import BatchHeader
    from ottla.storage.producers.snapshot import Snapshots
    from ottla.storage.producers.state import Producer, ProducerStates
    from ottla.storage.segment_files.segment import Segment

_logger: Final = logging.getLogger(__name__)

_LOOK_BACK: Final = 100


def load_producers(
    segments: list[Segment], snapshots: Snapshots, next_offset: int, trusted_until: int
) -> tuple[int, ProducerStates]:
    """Load the newest snapshot taken at or before `trusted_until`, updated with the batches after it.

    Returns the offset at which it was taken.
    """
    taken_at, producers = snapshots.newest(trusted_until)
    while taken_at > 0 and not _is_of(taken_at, producers, segments):
        _logger.warning("ignoring the producer snapshot at offset %d: it does not match the log", taken_at)
        taken_at, producers = snapshots.newest(taken_at - 1)
    for segment in reaching(segments, taken_at) if taken_at < next_offset else ():
        for position, header in segment.headers(taken_at):
            if header.producer_id >= 0:
                _replay(segment, position, header, producers)
    return taken_at, producers


def _is_of(taken_at: int, producers: ProducerStates, segments: list[Segment]) -> bool:
    """Whether these producers include the last batches before this offset, and none after it."""
    if any(known.batches and known.batches[-1].last_offset >= taken_at for known in producers.producers.values()):
        return False
    before = [segment for segment in segments if segment.base_offset < taken_at]
    for segment in before[-1:]:
        # Not far back, so that a clean start reads only the end of the data.
        entry = segment.indexes.at_or_before(taken_at - 1)
        indexed = segment.base_offset if entry is None else entry.last_offset
        near = (header for _, header in segment.headers(max(taken_at - _LOOK_BACK, indexed)))
        headers = list(takewhile(lambda header: header.last_offset < taken_at, near))
        for header in headers:
            known = producers.producers.get(header.producer_id)
            if known is not None and known.epoch == header.producer_epoch and not _knows(known, header):
                return False
        return all(_is_among(headers, number, known) for number, known in producers.producers.items())
    return True


def _is_among(headers: list[BatchHeader], producer_id: int, producer: Producer) -> bool:
    """Whether the producer's last batch is one of these, or before them."""
    if not headers or not producer.batches or producer.batches[-1].last_offset < headers[0].base_offset:
        return True
    last = producer.batches[-1]
    return any(
        (header.producer_id, header.last_offset, header.last_sequence)
        == (producer_id, last.last_offset, last.last_sequence)
        for header in headers
    )


def _knows(producer: Producer, header: BatchHeader) -> bool:
    if header.is_control:
        return producer.transaction_start == NO_TRANSACTION or producer.transaction_start > header.base_offset
    return bool(producer.batches) and producer.batches[-1].last_offset >= header.last_offset


def _replay(segment: Segment, position: int, header: BatchHeader, producers: ProducerStates) -> None:
    if not header.is_control:
        producers.appended(header, header.base_offset)
        return
    marker = read_end_marker(segment.batches_at(position, header.size))
    if marker is not None:
        aborted = producers.ended(header, header.base_offset, marker)
        if aborted is not None and not segment.txn_index.has(aborted.last_offset):
            # Later entries, if any, are added again: entries are in the order of their markers.
            segment.txn_index.drop_from(aborted.last_offset)
            segment.txn_index.append(aborted)
