"""The rules of one partition of a share group, one by one; test_model.py mixes them."""

from __future__ import annotations

import pytest

from ottla.core.errors import InvalidRecordState, InvalidRequest
from ottla.share import partition as rules
from ottla.share.partition import Acknowledgement as Ack
from ottla.share.partition import Acquired, Change, Delay, Limits, SharePartition
from ottla.share.spans import State

LIMITS = Limits(lock_ms=100, deliveries=2, in_flight=10)


def filled(last: int = 9) -> SharePartition:
    """A partition with one batch from offset 0, all records available."""
    partition = SharePartition(0)
    partition.look_at(0, 0, last)
    return partition


def taken(partition: SharePartition, first: int, last: int, member: str = "ann", now_ms: int = 0) -> list[Acquired]:
    return partition.acquire(first, last, member, 1000, LIMITS, now_ms)


def test_released_records_come_before_new_ones() -> None:
    partition = filled()
    taken(partition, 0, 9)
    assert partition.wanted(20) == 10
    partition.apply([Change(4, 5, State.AVAILABLE, 1)])
    assert partition.wanted(20) == 4
    assert taken(partition, 0, 9, "bob") == [Acquired(4, 5, 2)]


def test_no_new_records_are_acquired_while_the_window_is_full() -> None:
    partition = filled()
    taken(partition, 0, 9)
    assert partition.wanted(10) is None
    partition.apply([Change(7, 7, State.ACKNOWLEDGED, 1)])
    assert partition.wanted(10) == 10


def test_the_start_offset_moves_past_settled_records() -> None:
    partition = filled()
    taken(partition, 0, 9)
    changes = [Change(0, 1, State.ACKNOWLEDGED, 1), Change(3, 3, State.ARCHIVED, 1), Change(2, 2, State.ARCHIVED, 1)]
    assert partition.start_after(changes) == 4
    partition.apply(changes)
    assert (partition.start, partition.completed, partition.in_flight) == (4, 0, 6)
    partition.apply([Change(6, 6, State.ACKNOWLEDGED, 1)])
    assert (partition.start, partition.completed) == (4, 1)


def test_a_lock_expires_unless_renewed() -> None:
    partition = filled()
    taken(partition, 0, 1)
    _, renewed = partition.acknowledge("ann", 1, 1, [Ack.RENEW], LIMITS)
    partition.renew(renewed, LIMITS, now_ms=60)
    assert partition.expire(LIMITS, 99) == ([], False)
    assert partition.expire(LIMITS, 100) == ([Change(0, 0, State.AVAILABLE, 1)], False)
    partition.apply([Change(0, 0, State.AVAILABLE, 1)])
    assert partition.expire(LIMITS, 160)[0] == [Change(1, 1, State.AVAILABLE, 1)]


@pytest.mark.parametrize(("has_letters", "end"), [(False, State.ARCHIVED), (True, State.DYING)])
def test_records_over_the_delivery_limit_or_rejected_are_archived(has_letters: bool, end: State) -> None:  # noqa: FBT001
    limits = LIMITS._replace(has_dead_letters=has_letters)
    partition = filled()
    taken(partition, 0, 1)
    partition.apply(partition.acknowledge("ann", 0, 1, [Ack.RELEASE], limits)[0])
    taken(partition, 0, 2)
    changes, _ = partition.acknowledge("ann", 0, 2, [Ack.RELEASE, Ack.REJECT, Ack.REJECT], limits)
    assert changes == [Change(0, 0, end, 2), Change(1, 1, end, 2, True), Change(2, 2, end, 1, True)]  # noqa: FBT003
    partition.apply(changes)
    assert partition.in_flight == (10 if has_letters else 7)
    partition.apply(partition.buried(partition.dying()))
    assert partition.start == 3


def test_invalid_acknowledgements_are_refused() -> None:
    partition = filled()
    taken(partition, 0, 3)
    for first, last, kinds in [(1, 0, [1]), (0, 3, [1, 1]), (0, 0, [5]), (0, 0, [])]:
        with pytest.raises(InvalidRequest):
            partition.acknowledge("ann", first, last, kinds, LIMITS)
    for member, first, last in [("bob", 0, 0), ("ann", 3, 4), ("ann", 20, 20)]:
        with pytest.raises(InvalidRecordState):
            partition.acknowledge(member, first, last, [1], LIMITS)


def test_delayed_records_are_scanned_again_when_the_first_is_due() -> None:
    partition = SharePartition(0)
    partition.look_at(0, 0, 3, [Delay(0, 500), Delay(1, 300)])
    assert taken(partition, 0, 3) == [Acquired(2, 3, 1)]
    assert (partition.delayed, partition.wanted(10), partition.next_deadline_ms()) == (2, 4, 100)
    partition.apply([Change(2, 3, State.ACKNOWLEDGED, 1)])
    assert partition.expire(LIMITS, 300) == ([], True)
    assert partition.wanted(10) == 0
    assert partition.is_unknown(0, 1)
    partition.look_at(0, 0, 3, [Delay(0, 500)])
    assert taken(partition, 0, 3, now_ms=300) == [Acquired(1, 1, 1)]


def test_a_delayed_record_is_found_before_later_ones() -> None:
    partition = SharePartition(0)
    partition.look_at(0, 0, 0, [Delay(0, 50)])
    partition.look_at(1, 1, 5)
    assert partition.wanted(10) == 1
    assert partition.expire(LIMITS, 50) == ([], True)
    partition.look_at(0, 0, 0)
    assert partition.wanted(10) == 0


def test_too_many_delayed_records_pause_the_scan_until_one_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_DELAYED", 2)
    partition = SharePartition(0)
    for offset in range(0, 8, 4):
        partition.look_at(offset, offset, offset + 3, [Delay(offset + 1, 100 + offset)])
    assert partition.wanted(50) == 0
    for offset in (0, 2, 3, 4, 6, 7):
        taken(partition, offset, offset)
    assert partition.wanted(50) is None
    assert partition.expire(LIMITS, 100)[1]
    assert partition.wanted(50) == 1


def test_many_adjacent_delayed_records_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_DELAYED", 4)
    partition = SharePartition(0)
    for offset in range(100):
        partition.look_at(offset, offset, offset, [Delay(offset, 1000 - offset)])
    assert partition.delayed == 100
    assert partition.has_room(10)
    assert partition.expire(LIMITS, 901)[1]
    assert partition.wanted(10) is not None


def test_unpersisted_state_is_scanned_again_after_a_crash() -> None:
    partition = SharePartition.restored(5, [Change(7, 8, State.ACKNOWLEDGED, 1), Change(10, 10, State.AVAILABLE, 2)])
    assert (partition.start, partition.end, partition.wanted(10)) == (5, 11, 5)
    partition.look_at(5, 4, 6)
    partition.look_at(7, 7, 12)
    assert taken(partition, 4, 12) == [Acquired(5, 6, 1), Acquired(9, 9, 1), Acquired(10, 10, 3), Acquired(11, 12, 1)]


def test_the_log_may_begin_later_and_end_sooner() -> None:
    partition = filled()
    taken(partition, 0, 5)
    partition.move_start(3)
    assert partition.held_by("ann") == [Acquired(3, 5, 1)]
    assert partition.acknowledge("ann", 0, 3, [Ack.ACCEPT], LIMITS)[0] == [Change(3, 3, State.ACKNOWLEDGED, 1)]
    partition.cut_end(5)
    assert partition.held_by("ann") == [Acquired(3, 4, 1)]
    assert partition.end == 5


def test_compacted_records_are_not_scanned_forever() -> None:
    partition = filled()
    taken(partition, 0, 9)
    partition.apply([Change(2, 5, State.AVAILABLE, 1)])
    assert partition.wanted(20) == 2
    partition.miss(2, 4)
    assert partition.wanted(20) == 5
    partition.apply([Change(0, 1, State.ACKNOWLEDGED, 1)])
    assert partition.start == 5
