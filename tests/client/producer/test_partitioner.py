"""Which partition takes the records without a key."""

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
    """What there was to choose from."""
    seen: list[int] = []

    def choose(candidates: object) -> int:
        seen.extend(candidates)  # type: ignore[call-overload]
        return seen[0]

    assert StickyChoice(lambda _topic: led, choose)(buffers) == seen[0]
    return seen


def test_any_partition_with_a_leader_may_be_next() -> None:
    assert offered([0, 2], topic(3)) == [0, 2]


def test_one_without_room_is_passed_over() -> None:
    buffers = topic(3)
    buffers.fillings[1].room = 0

    assert offered([0, 1, 2], buffers) == [0, 2]


def test_one_whose_open_batch_takes_more_has_room() -> None:
    buffers = topic(2)
    assert Accumulator(threading.Lock(), lambda _filling: None).append(buffers, 1, 0, None, b"v") is not None
    buffers.fillings[1].room = 0

    assert offered([0, 1], buffers) == [0, 1]


def test_without_room_anywhere_any_with_a_leader_will_do() -> None:
    buffers = topic(2)
    for filling in buffers.fillings:
        filling.room = 0

    assert offered([1], buffers) == [1]


def test_without_a_leader_anywhere_the_record_waits_at_any() -> None:
    assert offered([], topic(2)) == [0, 1]


def test_partitions_that_are_not_known_here_yet_are_left_out() -> None:
    assert offered([0, 1, 2], topic(2)) == [0, 1]


def test_a_single_partition_is_the_only_choice() -> None:
    assert StickyChoice(lambda _topic: [])(topic(1)) == 0
