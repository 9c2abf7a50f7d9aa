"""Where a follower truncates its log to match its leader's."""

from __future__ import annotations

import pytest

from ottla.cluster.replication.following import (
    Restart,
    Truncate,
    followed_high_watermark,
    truncation_point,
    when_out_of_range,
)
from ottla.storage.leader_epochs import LeaderEpochs


@pytest.mark.parametrize(
    ("own", "leader", "point"),
    [
        ([(1, 0)], (1, 15), 15),  # the same epoch, which ended earlier at the leader
        ([(1, 0), (3, 10)], (1, 12), 10),  # ours continued in an epoch that the leader never saw
        ([(1, 0), (3, 10)], (2, 12), 10),  # we never saw the leader's epoch
        ([(1, 0), (3, 18)], (1, 12), 12),
        ([(5, 0)], (3, 20), 0),  # all of ours is later than all of the leader's
        ([(5, 4)], (3, 20), 4),
    ],
)
def test_a_log_is_truncated_where_it_may_diverge_from_the_leaders(
    own: list[tuple[int, int]], leader: tuple[int, int], point: int
) -> None:
    assert truncation_point(LeaderEpochs(own), 20, *leader) == point


def test_a_follower_ahead_of_its_leader_is_truncated_to_the_leaders_end() -> None:
    assert when_out_of_range(20, 0, 12) == Truncate(12)


def test_a_follower_behind_the_leaders_log_start_restarts_there() -> None:
    assert when_out_of_range(20, 50, 80) == Restart(50)


def test_a_followers_high_watermark_follows_its_leaders_and_never_decreases() -> None:
    assert followed_high_watermark(5, leader_high_watermark=9, end_offset=7) == 7
    assert followed_high_watermark(5, leader_high_watermark=9, end_offset=20) == 9
    assert followed_high_watermark(5, leader_high_watermark=3, end_offset=20) == 5
