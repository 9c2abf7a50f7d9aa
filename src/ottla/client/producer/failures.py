"""Failures that were not raised yet, counted until they are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.errors import DeliveryFailed
from ottla.client.producer.batch import Refused
from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.producer.batch import Batch

_MOST_KEPT = 1000


class UnseenFailures:
    """Failed batches. Records that are awaited, even later, do not count."""

    def __init__(self) -> None:
        self._batches: list[Batch] = []
        self._forgotten = 0

    def add(self, batch: Batch) -> None:
        if len(self._batches) == _MOST_KEPT:
            # Without a flush the list would grow: keep some, and count the rest.
            self._forgotten += _unseen(self._batches.pop())
        self._batches.append(batch)

    def take(self) -> DeliveryFailed | None:
        """Return all of them as one error, once."""
        unseen = [(batch, count) for batch in self._batches if (count := _unseen(batch))]
        total = self._forgotten + sum(count for _, count in unseen)
        self._batches.clear()
        self._forgotten = 0
        if not unseen:
            return None
        first = unseen[0][0]
        places = sorted({TopicPartition(batch.topic, batch.partition) for batch, _ in unseen})
        named = ", ".join(map(str, places[:3])) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
        assert isinstance(first.outcome, Refused)  # noqa: S101 - nothing else is added
        cause = first.outcome.error
        failed = DeliveryFailed(f"could not deliver {total} records to {named}: {cause}")
        failed.__cause__ = cause
        return failed


def _unseen(batch: Batch) -> int:
    return max(0, batch.count - batch.awaited)
