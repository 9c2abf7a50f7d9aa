"""When a fetch is sent, for which partitions, and how long the broker may wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.bundling import BundleRule
from ottla.client.consumer.fetch_plan import WaitRule, plan_fetch

from .making import A, B, C, batch, fill, queue

if TYPE_CHECKING:
    from ottla.client.consumer.partition_queue import PartitionQueue

RULE = BundleRule(min_requests=10, max_wait_s=0.1)


def full(at: PartitionQueue) -> PartitionQueue:
    while at.has_room:
        fill(at, batch(at.fetch_offset or 0), end=99)
    return at


def half_full(at: PartitionQueue) -> PartitionQueue:
    fill(at, batch(at.fetch_offset or 0), end=99)
    return at


def test_partitions_with_room_are_fetched_the_emptiest_first() -> None:
    one, two, three = half_full(queue(A)), full(queue(B)), queue(C)

    plan = plan_fetch([one, two, three], 0.0, with_caught_up=True)

    assert plan.ready == [three, one]
    assert plan.attached == 3
    assert not plan.has_all


def test_partitions_in_flight_paused_unknown_or_failed_are_not_fetched() -> None:
    pending, paused, unknown, failed = queue(A), queue(B), queue(C, offset=None), queue(A)
    pending.ask()
    paused.is_paused = True
    failed.is_failed = True

    plan = plan_fetch([pending, paused, unknown, failed], 0.0, with_caught_up=True)

    assert plan.ready == []
    assert plan.attached == 1
    assert plan.send_at(RULE, 0.0) is None


def test_a_partition_with_an_error_is_fetched_again_after_its_backoff() -> None:
    late, later = queue(A), queue(B)
    late.retry_later(late.ask(), 5.0)
    later.retry_later(later.ask(), 6.0)

    assert plan_fetch([later, late], 4.0, with_caught_up=True).retry_at == 5.0
    assert plan_fetch([later, late], 5.5, with_caught_up=True).ready == [late]


def test_an_empty_partition_is_fetched_at_once() -> None:
    plan = plan_fetch([queue(A), full(queue(B))], 0.0, with_caught_up=True)

    assert plan.send_at(RULE, 7.0) == 7.0


def test_a_partition_with_records_left_waits_for_others_for_a_while() -> None:
    alone = plan_fetch([half_full(queue(A)), full(queue(B))], 0.0, with_caught_up=True)
    together = plan_fetch([half_full(queue(A)), half_full(queue(B))], 0.0, with_caught_up=True)

    assert alone.send_at(RULE, 7.0) == 7.1
    assert together.send_at(RULE, 7.0) == 7.0


def test_beside_a_long_poll_only_partitions_that_may_have_records_are_fetched() -> None:
    caught_up, behind = queue(A), queue(B)
    fill(caught_up, b"", end=0)

    assert plan_fetch([caught_up, behind], 0.0, with_caught_up=False).ready == [behind]
    assert plan_fetch([caught_up, behind], 0.0, with_caught_up=True).ready == [caught_up, behind]


def test_a_long_poll_without_all_partitions_is_short_at_first() -> None:
    rule = WaitRule(max_wait_ms=10)

    assert [rule.next_wait_ms(has_all=False) for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    rule.has_room()
    assert rule.next_wait_ms(has_all=False) == 1
    assert rule.next_wait_ms(has_all=True) == 10
    assert rule.next_wait_ms(has_all=False) == 1


def test_max_wait_zero_never_waits() -> None:
    rule = WaitRule(max_wait_ms=0)

    assert [rule.next_wait_ms(has_all=False) for _ in range(3)] == [0, 0, 0]


def test_nothing_is_fetched_from_the_end_of_a_bounded_seek_on() -> None:
    one = queue(A)
    one.seek(3, until=5)
    assert plan_fetch([one], 0.0, with_caught_up=True).ready == [one]

    fill(one, batch(3, 2), end=99)
    assert plan_fetch([one], 0.0, with_caught_up=True).attached == 0

    one.seek(5)
    assert plan_fetch([one], 0.0, with_caught_up=True).ready == [one]
