"""Where a record goes that names no partition.

With a key: where every Kafka client puts that key (records.murmur2), so long as the topic has as many partitions.
Without one: all to one partition until its batch closes, then to another, so that batches are large (KIP-480).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.chance import CHANCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.client.producer.accumulator import TopicBuffers


class StickyChoice:
    """The next partition for records without a key: one at random among those that have a leader and room."""

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
        # Where nobody leads the record waits for a leader, and where there is no room it waits for room.
        candidates = [partition for partition in led if topic.fillings[partition].has_room] or led
        return self._choose(candidates or range(topic.count))
