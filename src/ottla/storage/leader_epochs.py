"""The leader epochs of a log (KIP-101) with their start offsets."""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import Final

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1


class LeaderEpochs:
    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.entries = entries if entries is not None else []

    @property
    def latest(self) -> int:
        entries = self.entries
        return entries[-1][0] if entries else NO_EPOCH

    def begin(self, epoch: int, start_offset: int) -> bool:
        """Record that `epoch` starts at `start_offset`; returns whether that is new."""
        if epoch <= self.latest:
            return False
        # An epoch without records is dropped.
        while self.entries and self.entries[-1][1] >= start_offset:
            self.entries.pop()
        self.entries.append((epoch, start_offset))
        return True

    def with_current(self, epoch: int, next_offset: int) -> LeaderEpochs:
        """A leader's view: includes its current epoch, which is recorded only with its first record."""
        if epoch <= self.latest:
            return self
        epochs = LeaderEpochs(list(self.entries))
        epochs.begin(epoch, next_offset)
        return epochs

    def end_of(self, epoch: int, next_offset: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch`, and its end offset.

        An epoch before the first known one ended where that one starts: its records are deleted, not truncated. Later
        epochs and NO_EPOCH are unknown. Followers and consumers (KIP-320) find their divergence point with this.
        """
        if not 0 <= epoch <= self.latest:
            return NO_EPOCH, NO_OFFSET
        following = bisect_right(self.entries, epoch, key=itemgetter(0))
        end = self.entries[following][1] if following < len(self.entries) else next_offset
        return self.entries[following - 1][0] if following else epoch, end

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at `offset`."""
        following = bisect_right(self.entries, offset, key=itemgetter(1))
        return self.entries[following - 1][0] if following else NO_EPOCH

    def drop_from(self, offset: int) -> bool:
        """Drop epochs that started at `offset` or later; returns whether there were any."""
        count = len(self.entries)
        while self.entries and self.entries[-1][1] >= offset:
            self.entries.pop()
        return len(self.entries) < count

    def drop_before(self, offset: int) -> bool:
        """Drop epochs that ended before `offset`, and let the first one start there; returns whether any changed."""
        following = bisect_right(self.entries, offset, key=itemgetter(1))
        if following == 0 or self.entries[0][1] == offset:
            return False
        self.entries[:following] = [(self.entries[following - 1][0], offset)]
        return True
