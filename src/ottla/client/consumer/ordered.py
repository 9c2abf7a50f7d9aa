"""Merges partitions into one stream: by timestamp, then by offset.

The next record is known once every partition has a next record, or is at its end. A partition at
its end is not waited for: an older record that is written to it later is delivered later.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING, Final

from ottla.client.consumer.ready import failed
from ottla.client.serializers import NotReady

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.client.consumer.partition_queue import PartitionQueue
    from ottla.core.ids import TopicPartition
    from ottla.records.reader import Record

_AHEAD: Final = 500
"""How many records of a partition are decoded at a time."""

Entry = tuple[int, int, "TopicPartition", deque["Record"], "PartitionQueue"]


class OrderedMerge:
    def __init__(self) -> None:
        self._held: dict[TopicPartition, deque[Record]] = {}

    def take(self, queues: Iterable[PartitionQueue], count: int) -> list[Record]:
        """At most `count` records that no older record can precede."""
        heap: list[Entry] = []
        for queue in queues:
            if not queue.is_delivered:
                continue
            held = self._next_of(queue)
            if held:
                heap.append(_entry(held, queue))
            elif not queue.is_at_end:
                return []
        heapq.heapify(heap)
        records: list[Record] = []
        while heap and len(records) < count:
            _, _, _, held, queue = heap[0]
            records.append(held.popleft())
            if held or self._has_more(queue, held):
                heapq.heapreplace(heap, _entry(held, queue))
                continue
            heapq.heappop(heap)
            if not queue.is_at_end:
                break
        return records

    def _next_of(self, queue: PartitionQueue) -> deque[Record]:
        held = self._held.setdefault(queue.at, deque())
        if not held:
            try:
                held.extend(queue.take(_AHEAD))
            except NotReady:
                raise
            except Exception as error:
                raise failed(queue, error) from error
        return held

    def _has_more(self, queue: PartitionQueue, held: deque[Record]) -> bool:
        """Whether there is more. An error is left to the next call, after the records merged so far."""
        try:
            held.extend(queue.take(_AHEAD))
        except Exception:  # noqa: BLE001 - the next call meets it again
            return False
        return bool(held)

    def position(self, at: TopicPartition) -> int | None:
        """The offset of the first record held here."""
        held = self._held.get(at)
        return held[0].offset if held else None

    def drop(self, at: TopicPartition) -> None:
        self._held.pop(at, None)


def _entry(held: deque[Record], queue: PartitionQueue) -> Entry:
    first = held[0]
    return first.timestamp, first.offset, queue.at, held, queue
