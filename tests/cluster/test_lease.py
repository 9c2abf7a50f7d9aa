from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster.lease import Lease, ask_every_s


def test_no_lease_is_held_before_zookeeper_has_answered() -> None:
    assert Lease().is_over(0.0)


@given(st.floats(0, 1e6), st.floats(2, 60))
def test_a_lease_ends_before_zookeeper_can_end_the_session(sent_s: float, timeout_s: float) -> None:
    lease = Lease()
    lease.answered(sent_s, timeout_s)

    assert not lease.is_over(sent_s)
    assert lease.is_over(sent_s + timeout_s * 0.76)


def test_a_lease_counts_from_the_request_not_from_the_response() -> None:
    lease = Lease()
    lease.answered(10.0, 4.0)

    assert lease.left_s(12.0) == 1.0
    assert lease.is_over(13.0)


def test_a_late_response_does_not_shorten_the_lease() -> None:
    lease = Lease()
    lease.answered(10.0, 4.0)
    lease.answered(8.0, 4.0)

    assert not lease.is_over(12.9)


def test_some_pings_may_be_lost_before_the_lease_ends() -> None:
    lease = Lease()
    lease.answered(0.0, 6.0)

    assert not lease.is_over(3 * ask_every_s(6.0))


def test_an_expired_session_ends_the_lease_at_once() -> None:
    lease = Lease()
    lease.answered(0.0, 6.0)
    lease.end()

    assert lease.is_over(0.1)
