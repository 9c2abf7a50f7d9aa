"""The leader's rules for the ISR and the high watermark, case by case."""

from __future__ import annotations

from dataclasses import replace

from ottla.cluster.replication.leading import Leading
from ottla.cluster.state import PartitionState
from ottla.core.ids import TopicId

LAG_MS = 1000
STATE = PartitionState(TopicId(bytes(range(16))), "t", 0, (0, 1, 2), 0, 5, (0, 1, 2), 1)


def leading(isr: tuple[int, ...] = (0, 1, 2), end: int = 10, high_watermark: int = 10, now_ms: int = 0) -> Leading:
    rules = Leading(replace(STATE, isr=isr), end, high_watermark, lag_ms=LAG_MS, now_ms=now_ms)
    rules.present = {0: -1, 1: -1, 2: -1}
    return rules


def test_a_record_is_committed_once_every_replica_in_sync_has_it() -> None:
    rules = leading()

    rules.fetched(1, 12, 0, end_offset=12, now_ms=1)
    assert not rules.advance(12, 1)
    rules.fetched(2, 11, 0, end_offset=12, now_ms=1)
    assert rules.advance(12, 1)

    assert rules.high_watermark == 11


def test_nothing_is_committed_while_there_are_eligible_replicas() -> None:
    leading = Leading(replace(STATE, isr=(0,), eligible=(1,)), 5, 3, lag_ms=LAG_MS, now_ms=0)

    assert not leading.advance(9, 1)
    assert leading.high_watermark == 3

    leading.changed(replace(STATE, isr=(0,), version=STATE.version + 1))
    assert leading.advance(9, 1)
    assert leading.high_watermark == 9


def test_a_leader_alone_commits_what_it_writes() -> None:
    rules = leading(isr=(0,))

    assert rules.advance(12, 1)
    assert rules.high_watermark == 12


def test_a_replica_that_is_about_to_join_is_waited_for() -> None:
    rules = leading(isr=(0,))
    rules.fetched(1, 10, 0, end_offset=10, now_ms=1)

    assert not rules.advance(12, 2)
    assert rules.with_joining(1, 0) == {0, 1}


def test_a_dead_replica_is_not_waited_for() -> None:
    rules = leading(isr=(0,))
    rules.fetched(1, 10, 0, end_offset=10, now_ms=1)
    rules.present = {0: -1, 2: -1}

    assert rules.advance(12, 2)
    assert rules.with_joining(1, 0) is None


def test_a_replica_that_lacks_committed_records_does_not_join() -> None:
    rules = leading(isr=(0, 1), end=10, high_watermark=5)
    rules.fetched(2, 6, 0, end_offset=10, now_ms=1)

    assert rules.with_joining(2, 0) is None

    rules.fetched(2, 10, 0, end_offset=10, now_ms=2)
    assert rules.with_joining(2, 0) == {0, 1, 2}


def test_a_replica_that_lags_for_long_leaves_the_isr() -> None:
    rules = leading()
    rules.fetched(1, 12, 0, end_offset=12, now_ms=LAG_MS)
    rules.fetched(2, 10, 0, end_offset=12, now_ms=LAG_MS)

    assert rules.without_late(12, LAG_MS) is None
    assert rules.without_late(12, LAG_MS + 1) == {0, 1}


def test_a_replica_that_is_always_slightly_behind_stays_in_the_isr() -> None:
    rules = leading(end=0, high_watermark=0)
    rules.isr = frozenset({0, 1})
    for step in range(1, 10):
        rules.fetched(1, (step - 1) * 10, 0, end_offset=step * 10, now_ms=step * 700)

        assert rules.without_late(step * 10, step * 700) is None


def test_a_replica_that_lost_records_leaves_at_once() -> None:
    rules = leading()
    rules.fetched(1, 10, 0, end_offset=10, now_ms=1)
    rules.fetched(2, 10, 0, end_offset=10, now_ms=1)

    rules.fetched(2, 0, 0, end_offset=10, now_ms=2)

    assert rules.without_late(10, 2) == {0, 1}


def test_while_an_isr_change_is_pending_both_sets_count() -> None:
    rules = leading()
    rules.fetched(1, 12, 0, end_offset=12, now_ms=1)
    rules.propose(frozenset({0, 1}))
    assert not rules.advance(12, 2)
    assert rules.without_late(12, 10 * LAG_MS) is None

    rules.changed(replace(STATE, isr=(0, 1), version=2))

    assert rules.advance(12, 2)
    assert rules.high_watermark == 12


def test_all_replicas_have_the_committed_records_when_all_are_in_the_isr() -> None:
    rules = leading(isr=(0, 1))
    assert not rules.is_complete

    rules.propose(frozenset((0, 1, 2)))
    assert not rules.is_complete
    rules.changed(replace(STATE, version=STATE.version + 1))
    assert rules.is_complete

    rules.changed(replace(STATE, replicas=(0, 1, 2, 3), adding=(3,), version=STATE.version + 2))
    assert not rules.is_complete


def test_an_older_state_changes_nothing() -> None:
    rules = leading()

    rules.changed(replace(STATE, isr=(0,), version=1))

    assert rules.isr == {0, 1, 2}


def test_min_insync_replicas_is_capped_at_the_number_of_replicas() -> None:
    rules = leading(isr=(0, 1))

    assert rules.has_enough(2)
    assert not rules.has_enough(3)
    assert Leading(replace(STATE, replicas=(0,), isr=(0,)), 0, 0, lag_ms=1, now_ms=0).has_enough(2)


def test_a_fetch_of_an_earlier_registration_does_not_count() -> None:
    rules = leading(isr=(0,))
    rules.present = {0: 1, 1: 7}

    rules.fetched(1, 10, 0, end_offset=10, now_ms=1, broker_epoch=6)

    assert rules.followers[1].end_offset == -1
    assert rules.with_joining(1, 0) is None


def test_a_late_fetch_of_an_earlier_registration_does_not_undo_a_later_one() -> None:
    rules = leading(isr=(0, 1), end=10, high_watermark=9)
    rules.fetched(1, 9, 0, end_offset=10, now_ms=1, broker_epoch=7)

    rules.fetched(1, 10, 0, end_offset=10, now_ms=2, broker_epoch=6)

    assert not rules.advance(10, 2)


def test_a_replica_joins_only_by_fetches_of_its_current_registration() -> None:
    rules = leading(isr=(0,))
    rules.present = {0: 1, 1: 6}
    rules.fetched(1, 10, 0, end_offset=10, now_ms=1, broker_epoch=6)
    assert rules.with_joining(1, 0) == {0, 1}

    rules.present = {0: 1, 1: 7}
    assert rules.with_joining(1, 0) is None
    assert rules.epochs_of({0, 1}) == {0: -1, 1: 6}


def test_a_replica_whose_log_starts_before_the_leaders_does_not_join() -> None:
    rules = leading(isr=(0, 1))
    rules.fetched(2, 10, 3, end_offset=10, now_ms=1)

    assert rules.with_joining(2, 4) is None
    assert rules.with_joining(2, 3) == {0, 1, 2}


def test_the_low_watermark_is_the_earliest_start_of_the_replicas_in_sync() -> None:
    rules = leading(isr=(0, 1))
    assert rules.low_watermark(5) == -1

    rules.fetched(1, 10, 3, end_offset=10, now_ms=1)
    assert rules.low_watermark(5) == 3
    rules.fetched(1, 10, 7, end_offset=10, now_ms=1)
    assert rules.low_watermark(5) == 5
    assert leading(isr=(0,)).low_watermark(5) == 5

    rules.propose(frozenset({0, 1, 2}))
    assert rules.low_watermark(5) == -1


def test_the_low_watermark_waits_for_eligible_replicas() -> None:
    """They may be elected, and would restore the deleted records."""
    rules = Leading(replace(STATE, isr=(0,), eligible=(1,)), 10, 10, lag_ms=LAG_MS, now_ms=0)
    assert rules.low_watermark(5) == -1
    rules.fetched(1, 10, 3, end_offset=10, now_ms=1)
    assert rules.low_watermark(5) == 3

    rules.changed(replace(STATE, isr=(0, 1), version=STATE.version + 1))
    rules.fetched(1, 10, 5, end_offset=10, now_ms=1)
    assert rules.low_watermark(5) == 5


# Tombstones that this leader has removed


def test_a_replica_continues_where_no_tombstone_is_removed() -> None:
    rules = leading(isr=(0, 2))

    assert rules.may_continue(1, 7, broker_epoch=4, start_offset=0, removed_until=7)
    assert not rules.may_continue(1, 6, broker_epoch=4, start_offset=0, removed_until=7)


def test_a_replica_that_has_copied_everything_from_this_leader_continues() -> None:
    rules = leading(isr=(0, 2))

    assert rules.may_continue(1, 3, broker_epoch=4, start_offset=3, removed_until=7)
    assert rules.may_continue(1, 6, broker_epoch=4, start_offset=3, removed_until=7)
    # It may have been started with another disk.
    assert not rules.may_continue(1, 6, broker_epoch=5, start_offset=3, removed_until=7)
    # More may be missing than at the beginning of its log.
    assert not rules.may_continue(1, 6, broker_epoch=4, start_offset=3, removed_until=8)


def test_a_replica_that_may_lead_never_has_to_start_over() -> None:
    rules = Leading(replace(STATE, isr=(0, 1), eligible=(2,)), 10, 10, lag_ms=LAG_MS, now_ms=0)

    for node in (1, 2):
        assert rules.may_continue(node, 6, broker_epoch=4, start_offset=0, removed_until=7)
