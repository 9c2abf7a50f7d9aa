"""When a heartbeat is due, and when the application exceeds its poll interval."""

from __future__ import annotations

from ottla.client.config import ConsumerConfig
from ottla.client.group.heartbeat_schedule import Due, HeartbeatSchedule

CONFIG = ConsumerConfig(group="g", heartbeat_interval_ms=3000, max_poll_interval_ms=10_000)


def test_a_heartbeat_is_due_an_interval_after_the_last() -> None:
    schedule = HeartbeatSchedule(CONFIG, now=100)
    schedule.poll_begins()
    assert schedule.due(102.9) is Due.NOTHING
    assert schedule.next_at() == 103
    assert schedule.due(103) is Due.HEARTBEAT
    schedule.beat(103)
    assert schedule.due(105.9) is Due.NOTHING
    assert schedule.next_at() == 106


def test_an_application_that_waits_for_messages_is_never_overdue() -> None:
    schedule = HeartbeatSchedule(CONFIG, now=0)
    schedule.poll_begins()
    assert schedule.due(1_000_000) is Due.HEARTBEAT


def test_an_application_that_does_not_poll_is_overdue() -> None:
    schedule = HeartbeatSchedule(CONFIG, now=0)
    schedule.poll_begins()
    schedule.poll_ends(5, is_busy=True)
    schedule.beat(14)
    assert schedule.due(14.9) is Due.NOTHING
    assert schedule.next_at() == 15
    assert schedule.due(15) is Due.POLL_OVERDUE
    schedule.poll_begins()
    assert schedule.due(15) is Due.NOTHING


def test_an_application_that_never_polls_is_overdue_too() -> None:
    assert HeartbeatSchedule(CONFIG, now=0).due(10) is Due.POLL_OVERDUE


def test_an_application_is_busy_from_receiving_messages_until_its_next_poll() -> None:
    schedule = HeartbeatSchedule(CONFIG, now=0)
    assert not schedule.is_busy
    schedule.poll_begins()
    schedule.poll_ends(1, is_busy=True)
    assert schedule.is_busy
    schedule.poll_begins()
    assert not schedule.is_busy
    schedule.poll_ends(2, is_busy=False)
    assert not schedule.is_busy
