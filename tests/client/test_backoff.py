"""Backoff between attempts."""

from __future__ import annotations

import pytest

from ottla.client.backoff import Backoff


def test_each_failure_doubles_the_wait_up_to_the_longest() -> None:
    backoff = Backoff(50, 1000, random=lambda: 0.5)
    waits = [backoff.delay_s(failures) for failures in range(8)]
    assert waits == pytest.approx([0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


def test_the_backoff_has_a_jitter_of_a_fifth() -> None:
    assert Backoff(100, 1000, random=lambda: 0.0).delay_s(1) == pytest.approx(0.08)
    assert Backoff(100, 1000, random=lambda: 1.0).delay_s(1) == pytest.approx(0.12)


def test_two_clients_that_failed_together_do_not_return_together() -> None:
    waits = {Backoff(50, 1000).delay_s(6) for _ in range(20)}
    assert len(waits) > 1


def test_a_very_long_series_of_failures_has_a_bounded_backoff() -> None:
    assert Backoff(50, 1000, random=lambda: 0.5).delay_s(1_000_000) == pytest.approx(1.0)
