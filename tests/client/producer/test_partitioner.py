"""The partition of records without a key."""

from __future__ import annotations

import threading

from ottla.client.producer.accumulator import Accumulator, Filling, TopicBuffers
from ottla.client.producer.partitioner import StickyChoice


def topic(partitions: int) -> TopicBuffers:
    buffers = TopicBuffers("t", lambda _topic: 0)
    buffers.fillings.extend(Filling(buffers, i, 1024, 2) for i in range(partitions))
    buffers.count = partitions
    return buffers


def offered(led: list[int], buffers: TopicBuffers) -> list[int]:
    """The candidate partitions."""
    seen: list[int] = []

    def choose(candidates: object) -> int:
        seen.extend(candidates)  # type: ignore[call-overload]
        return seen[0]

    assert StickyChoice(lambda _topic: led, choose)(buffers) == seen[0]
    return seen


def test_any_partition_with_a_leader_may_be_next() -> None:
    assert offered([0, 2], topic(3)) == [0, 2]


def test_a_partition_without_room_is_skipped() -> None:
    buffers = topic(3)
    buffers.fillings[1].room = 0

    assert offered([0, 1, 2], buffers) == [0, 2]


def test_a_partition_with_an_unfilled_batch_has_room() -> None:
    buffers = topic(2)
    assert Accumulator(threading.Lock(), lambda _filling: None).append(buffers, 1, 0, None, b"v") is not None
    buffers.fillings[1].room = 0

    assert offered([0, 1], buffers) == [0, 1]


def test_without_room_anywhere_any_partition_with_a_leader_is_chosen() -> None:
    buffers = topic(2)
    for filling in buffers.fillings:
        filling.room = 0

    assert offered([1], buffers) == [1]


def test_without_any_leader_any_partition_is_chosen() -> None:
    assert offered([], topic(2)) == [0, 1]


def test_partitions_without_a_queue_are_left_out() -> None:
    assert offered([0, 1, 2], topic(2)) == [0, 1]


def test_a_single_partition_is_the_only_choice() -> None:
    assert StickyChoice(lambda _topic: [])(topic(1)) == 0
