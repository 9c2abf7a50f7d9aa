"""Filtering of aborted batches for read_committed consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.records.batch import read_header
from ottla.records.control import read_end_marker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.wire.messages.fetch import AbortedTransaction


def without_aborted(batches: memoryview, aborted: Iterable[AbortedTransaction]) -> memoryview:
    """Complete batches without those of aborted transactions, as listed in the fetch response.

    A transaction is aborted from its first offset to its end marker; the same producer may commit the next one.
    """
    begin_later = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    if not begin_later:
        return batches
    under_way: set[int] = set()
    kept: list[memoryview] = []
    at = 0
    while at < len(batches):
        header = read_header(batches, at)
        batch = batches[at : at + header.size]
        at += header.size
        while begin_later and begin_later[-1].first_offset <= header.last_offset:
            under_way.add(begin_later.pop().producer_id)
        if header.is_control:
            if header.producer_id in under_way and _is_abort(batch):
                under_way.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in under_way):
            kept.append(batch)
    return memoryview(b"".join(kept))


def _is_abort(control_batch: memoryview) -> bool:
    marker = read_end_marker(control_batch)
    return marker is not None and not marker.is_commit
