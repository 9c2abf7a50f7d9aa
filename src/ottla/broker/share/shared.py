"""A share partition, and the fetches that wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.requests.waiting import Waiters

if TYPE_CHECKING:
    import asyncio

    from ottla.broker.partition import Partition
    from ottla.share.formats import StateKey
    from ottla.share.partition import Change, SharePartition


class Shared:
    __slots__ = ("burial", "dying", "key", "partition", "rules", "waits", "wakes_at_ms")

    def __init__(self, key: StateKey, rules: SharePartition, partition: Partition) -> None:
        self.key = key
        self.rules = rules
        self.partition = partition
        self.waits = Waiters()
        self.wakes_at_ms: int | None = None
        self.dying: list[Change] = []
        """Records to be written to the dead-letter topic."""
        self.burial: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Wake waiting fetches: records may be available."""
        self.waits.end()

    def follow_the_log(self) -> None:
        """Skip records that retention or a power failure has removed: they cannot be delivered."""
        log = self.partition.log
        self.rules.move_start(log.start_offset)
        self.rules.cut_end(log.next_offset)
