"""When a heartbeat is due, and when the application exceeds its poll interval."""

from __future__ import annotations

from ottla.client.config import ConsumerConfig
from ottla.client.group.pulse import Due, Pulse

CONFIG = ConsumerConfig(group="g", heartbeat_interval_ms=3000, max_poll_interval_ms=10_000)


def test_a_heartbeat_is_due_an_interval_after_the_last() -> None:
    pulse = Pulse(CONFIG, now=100)
    pulse.poll_begins()
    assert pulse.due(102.9) is Due.NOTHING
    assert pulse.next_at() == 103
    assert pulse.due(103) is Due.HEARTBEAT
    pulse.beat(103)
    assert pulse.due(105.9) is Due.NOTHING
    assert pulse.next_at() == 106


def test_an_application_that_waits_for_messages_is_never_overdue() -> None:
    pulse = Pulse(CONFIG, now=0)
    pulse.poll_begins()
    assert pulse.due(1_000_000) is Due.HEARTBEAT


def test_an_application_that_does_not_poll_is_overdue() -> None:
    pulse = Pulse(CONFIG, now=0)
    pulse.poll_begins()
    pulse.poll_ends(5, is_busy=True)
    pulse.beat(14)
    assert pulse.due(14.9) is Due.NOTHING
    assert pulse.next_at() == 15
    assert pulse.due(15) is Due.POLL_OVERDUE
    pulse.poll_begins()
    assert pulse.due(15) is Due.NOTHING


def test_an_application_that_never_polls_is_overdue_too() -> None:
    assert Pulse(CONFIG, now=0).due(10) is Due.POLL_OVERDUE


def test_an_application_is_busy_from_receiving_messages_until_its_next_poll() -> None:
    pulse = Pulse(CONFIG, now=0)
    assert not pulse.is_busy
    pulse.poll_begins()
    pulse.poll_ends(1, is_busy=True)
    assert pulse.is_busy
    pulse.poll_begins()
    assert not pulse.is_busy
    pulse.poll_ends(2, is_busy=False)
    assert not pulse.is_busy
