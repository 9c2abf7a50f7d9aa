"""Records taken from the queues: those the caller is processing, and those yet to be iterated."""

from __future__ import annotations

from operator import length_hint
from typing import TYPE_CHECKING

from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from ottla.records.reader import Record


class Handout:
    """Records handed to the caller. Nothing is tracked per record: a list's iterator has the position."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._left: Iterator[Record] = iter(())
        self._in_hand: Mapping[TopicPartition, int] | list[Record] = []
        self._is_iterated = False

    @property
    def has_left(self) -> bool:
        return length_hint(self._left) > 0

    @property
    def has_any(self) -> bool:
        """Whether the caller has unprocessed records."""
        return self.has_left or bool(self._in_hand)

    def keep(self, records: list[Record]) -> None:
        """Deliver these next."""
        self._records, self._left = records, iter(records)
        self._is_iterated = False

    def iterate(self) -> Iterator[Any]:
        """Deliver one record at a time: only the last one is being processed."""
        self._is_iterated = True
        return self._left

    def all_left(self, limit: int) -> list[Any]:
        """Deliver all at once: all are being processed until the next call."""
        left = self._records if length_hint(self._left) == len(self._records) else list(self._left)
        handed_out = left if len(left) <= limit else left[:limit]
        self.keep(left[limit:])
        self._in_hand = handed_out
        return handed_out

    def columns(self, starts: Mapping[TopicPartition, int]) -> None:
        """Record that records from these offsets on were delivered in another form."""
        self._in_hand = starts

    def come_back(self) -> None:
        """Handle a call for more records: the caller has processed the previous ones."""
        self._in_hand = []
        self._is_iterated = False

    def drop(self, unwanted: Iterable[TopicPartition]) -> None:
        """Drop the records of these partitions; iteration continues with the others."""
        gone = {(at.topic, at.partition) for at in unwanted}
        in_hand = self._last_iterated()
        left = [record for record in self._left if (record.topic, record.partition) not in gone]
        self._in_hand = in_hand or self._in_hand
        self.keep(left)

    def positions_left(self) -> dict[TopicPartition, int]:
        """The first offset of each partition that was taken but not delivered."""
        done = len(self._records) - length_hint(self._left)
        return _firsts(self._records[done:])

    def positions_in_hand(self) -> dict[TopicPartition, int]:
        """The first offset of each partition that may be unprocessed or undelivered."""
        in_hand = self._last_iterated() or self._in_hand
        return self.positions_left() | (_firsts(in_hand) if isinstance(in_hand, list) else dict(in_hand))

    def _last_iterated(self) -> list[Record]:
        done = len(self._records) - length_hint(self._left)
        return self._records[done - 1 : done] if self._is_iterated and done else []


def _firsts(records: list[Record]) -> dict[TopicPartition, int]:
    # Backwards, so that the first of each partition wins.
    return {TopicPartition(record.topic, record.partition): record.offset for record in reversed(records)}
