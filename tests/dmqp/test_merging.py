"""Merging shards in order: pure rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from ottla.dmqp.merging import Heads, is_before

if TYPE_CHECKING:
    from collections.abc import Iterable


class Shards:
    """Queues of sequence ids."""

    def __init__(self, queues: dict[int, list[int]]) -> None:
        self.queues = queues
        self.looks: list[list[int]] = []

    def peek(self, shards: Iterable[int]) -> dict[int, int]:
        asked = list(shards)
        found = {shard: self.queues[shard][0] for shard in asked if self.queues[shard]}
        self.looks.append(asked)
        return found


def drain(shards: Shards, mine: list[int]) -> list[int]:
    heads = Heads()
    taken = []
    while (shard := heads.lowest(mine, shards.peek)) is not None:
        taken.append(shards.queues[shard].pop(0))
        heads.forget(shard)
    return taken


def test_the_lowest_sequence_id_comes_first() -> None:
    assert drain(Shards({0: [0, 3, 4], 1: [1, 2, 5]}), [0, 1]) == [0, 1, 2, 3, 4, 5]


def test_only_leased_shards_are_peeked() -> None:
    shards = Shards({0: [0], 1: [1], 2: [2]})
    assert drain(shards, [0, 2]) == [0, 2]
    assert {shard for look in shards.looks for shard in look} == {0, 2}


def test_a_head_is_not_peeked_again_until_it_is_popped() -> None:
    shards = Shards({0: [0, 2], 1: [1, 3]})
    heads = Heads()
    heads.lowest([0, 1], shards.peek)
    heads.lowest([0, 1], shards.peek)
    assert shards.looks == [[0, 1]]


def test_an_empty_shard_is_peeked_again_once_a_head_is_known() -> None:
    # Shard 0 was empty when peeked; then 4 arrived there and 5 in shard 1, whose head was found.
    class Racing(Shards):
        def peek(self, shards: Iterable[int]) -> dict[int, int]:
            asked = list(shards)
            self.looks.append(asked)
            if len(self.looks) == 1:
                self.queues = {0: [4], 1: [5]}
                return {1: 5}
            return {shard: self.queues[shard][0] for shard in asked if self.queues[shard]}

    assert Heads().lowest([0, 1], Racing({0: [], 1: []}).peek) == 0


def test_equal_ids_are_ordered_by_shard() -> None:
    assert Heads().lowest([1, 0], Shards({0: [7], 1: [7]}).peek) == 0


def test_ids_wrap_around() -> None:
    assert is_before((1 << 32) - 1, 0)
    assert not is_before(0, (1 << 32) - 1)
    assert not is_before(5, 5)


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(0, (1 << 32) - 1))
def test_messages_are_popped_in_the_order_they_were_pushed(places: list[int], first: int) -> None:
    queues: dict[int, list[int]] = {shard: [] for shard in range(4)}
    for number, shard in enumerate(places):
        queues[shard].append((first + number) % (1 << 32))
    assert drain(Shards(queues), [0, 1, 2, 3]) == [(first + number) % (1 << 32) for number in range(len(places))]
