"""The partition of a record without an explicit one.

With a key: the partition every Kafka client chooses (records.murmur2), for the same number of partitions.
Without a key: one partition until its batch is closed, then another, so that batches are large (KIP-480).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.chance import CHANCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.client.producer.accumulator import TopicBuffers


class StickyChoice:
    """The next partition for records without a key: a random one with a leader and free buffers."""

    def __init__(
        self,
        led_partitions: Callable[[str], Sequence[int]],
        choose: Callable[[Sequence[int]], int] = CHANCE.choice,
    ) -> None:
        self._led_partitions = led_partitions
        self._choose = choose

    def __call__(self, topic: TopicBuffers) -> int:
        if topic.count == 1:
            return 0
        led = [partition for partition in self._led_partitions(topic.name) if partition < topic.count]
        # Without a leader the record waits for one; with full buffers it waits for a free one.
        candidates = [partition for partition in led if topic.fillings[partition].has_room] or led
        return self._choose(candidates or range(topic.count))
