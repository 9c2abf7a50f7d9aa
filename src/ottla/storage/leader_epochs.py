"""Which leader wrote which part of a log (KIP-101): each epoch and the offset that it began with."""

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
        """Note that records from `start_offset` on belong to `epoch`; whether that was news."""
        if epoch <= self.latest:
            return False
        # An epoch that wrote nothing before the next one began never mattered.
        while self.entries and self.entries[-1][1] >= start_offset:
            self.entries.pop()
        self.entries.append((epoch, start_offset))
        return True

    def with_current(self, epoch: int, next_offset: int) -> LeaderEpochs:
        """A leader's view: its current epoch counts, although it is noted only with its first record."""
        if epoch <= self.latest:
            return self
        epochs = LeaderEpochs(list(self.entries))
        epochs.begin(epoch, next_offset)
        return epochs

    def end_of(self, epoch: int, next_offset: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch`, and the offset after its last record.

        An epoch before the first one known ended where that one begins: its records are deleted, not truncated. Nothing
        is known of an epoch later than all of these, nor of NO_EPOCH. A follower and a consumer (KIP-320) find out
        with this where their log, or what they read of it, diverged from the leader's.
        """
        if not 0 <= epoch <= self.latest:
            return NO_EPOCH, NO_OFFSET
        following = bisect_right(self.entries, epoch, key=itemgetter(0))
        end = self.entries[following][1] if following < len(self.entries) else next_offset
        return self.entries[following - 1][0] if following else epoch, end

    def epoch_at(self, offset: int) -> int:
        """The epoch in which the record at `offset` was written."""
        following = bisect_right(self.entries, offset, key=itemgetter(1))
        return self.entries[following - 1][0] if following else NO_EPOCH

    def drop_from(self, offset: int) -> bool:
        """Forget epochs that began at `offset` or later; whether there were any."""
        count = len(self.entries)
        while self.entries and self.entries[-1][1] >= offset:
            self.entries.pop()
        return len(self.entries) < count

    def drop_before(self, offset: int) -> bool:
        """Forget epochs that ended before `offset`, and let the first one begin there; whether that changed any."""
        following = bisect_right(self.entries, offset, key=itemgetter(1))
        if following == 0 or self.entries[0][1] == offset:
            return False
        self.entries[:following] = [(self.entries[following - 1][0], offset)]
        return True
