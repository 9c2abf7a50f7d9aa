"""The sequence id counter and its form in replies."""

from __future__ import annotations

from ottla.dmqp.frame import HEADER, Status, reply
from ottla.dmqp.sequences import Counter


def test_a_counter_allows_the_next_number_and_zero() -> None:
    counter = Counter()
    counter.pass_over(41)
    assert [wanted for wanted in range(100) if counter.allows(wanted)] == [0, 42]
    assert counter.take() == 42
    assert not counter.allows(42)


def test_ids_wrap_around_at_the_protocols_maximum() -> None:
    counter = Counter()
    counter.pass_over((1 << 32) - 1)
    assert counter.allows(0)
    assert not counter.allows(1)
    assert counter.take() == 1 << 32
    assert counter.allows(1)
    assert HEADER.unpack(reply(Status.OK, counter.next))[0] == 1


def test_ids_are_returned_only_if_none_was_taken_since() -> None:
    counter = Counter()
    first = counter.take()
    counter.take()
    counter.give_back(first, 2)
    assert counter.next == 0
    mine, _other = counter.take(), counter.take()
    counter.give_back(mine, 1)
    assert counter.next == 2


def test_ids_in_use_are_skipped_and_never_revisited() -> None:
    counter = Counter()
    counter.pass_over(9)
    counter.pass_over(3)
    assert counter.next == 10
