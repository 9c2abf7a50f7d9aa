"""Which partitions of a broker to fetch now, and the fetch's maximum wait: pure rules.

A broker answers one fetch per connection at a time, so a partition that becomes ready during a long poll would wait for
its end. Hence there are two connections: such partitions are fetched on the second one, with no wait time. Partitions
that have caught up must be in the next long poll. So a long poll that omits partitions, because their buffers are full,
is short at first; its duration doubles each time none of the buffers was emptied meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.client.bundling import BundleRule
    from ottla.client.consumer.partition_queue import PartitionQueue

_SHORT_WAIT_MS: Final = 1
_buffer_count: Final = attrgetter("buffer_count")


@dataclass(frozen=True, slots=True)
class FetchPlan:
    ready: list[PartitionQueue]
    """Partitions with free buffers and no request in flight. The emptiest comes first, since the broker serves it
    first.
    """
    attached: int
    """The number of partitions that could become ready."""
    retry_at: float | None
    """When the first partition after an error may be fetched again."""

    @property
    def has_all(self) -> bool:
        return len(self.ready) == self.attached

    def send_at(self, rule: BundleRule, first_at: float) -> float | None:
        """When to send; None if there is nothing to send. A partition without buffered records does not wait."""
        if not self.ready:
            return None
        if self.ready[0].buffer_count == 0:
            return first_at
        return rule.send_at(len(self.ready), self.attached, first_at)


def plan_fetch(queues: Iterable[PartitionQueue], now: float, *, with_caught_up: bool) -> FetchPlan:
    ready: list[PartitionQueue] = []
    attached = 0
    retry_at: float | None = None
    for queue in queues:
        if not queue.is_wanted:
            continue
        if queue.not_before > now:
            retry_at = queue.not_before if retry_at is None else min(retry_at, queue.not_before)
            continue
        attached += 1
        if queue.has_room and not queue.is_pending and (with_caught_up or not queue.is_caught_up):
            ready.append(queue)
    ready.sort(key=_buffer_count)
    return FetchPlan(ready, attached, retry_at)


class WaitRule:
    """The fetch's max_wait_ms."""

    def __init__(self, max_wait_ms: int) -> None:
        self._max_wait_ms = max_wait_ms
        self._short_ms = _SHORT_WAIT_MS

    def next_wait_ms(self, *, has_all: bool) -> int:
        if has_all:
            self._short_ms = _SHORT_WAIT_MS
            return self._max_wait_ms
        wait_ms = min(self._short_ms, self._max_wait_ms)
        self._short_ms = min(2 * self._short_ms, self._max_wait_ms)
        return wait_ms

    def has_room(self) -> None:
        """Shorten the next wait: a buffer was emptied."""
        self._short_ms = _SHORT_WAIT_MS
