from __future__ import annotations

import time

import pytest

from ottla.core.clock import Clock, ManualClock, SystemClock


def test_the_system_clock_tells_the_time_of_this_machine() -> None:
    clock: Clock = SystemClock()
    before = time.time_ns() // 1_000_000

    assert before <= clock.now_ms() <= time.time_ns() // 1_000_000 + 1
    assert clock.monotonic_s() <= clock.monotonic_s()


def test_a_manual_clock_stands_still_until_advanced() -> None:
    clock: Clock = ManualClock(now_ms=5000)

    assert [clock.now_ms(), clock.now_ms()] == [5000, 5000]
    assert clock.monotonic_s() == 0.0


def test_advancing_moves_the_wall_clock_and_the_timeouts_together() -> None:
    clock = ManualClock(now_ms=5000)
    clock.advance(1.5)

    assert (clock.now_ms(), clock.monotonic_s()) == (6500, 1.5)


def test_setting_the_wall_clock_back_does_not_touch_timeouts() -> None:
    clock = ManualClock(now_ms=5000)
    clock.advance(2)
    clock.set_wall_clock(1)

    assert (clock.now_ms(), clock.monotonic_s()) == (1, 2.0)


def test_monotonic_time_cannot_go_back() -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        ManualClock().advance(-1)
