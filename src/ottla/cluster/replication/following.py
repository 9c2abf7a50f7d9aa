"""How a follower finds back to its leader's log: where to cut its own, and where to begin anew.

A follower's fetch says in which epoch its last record was written. If the leader's log has something else there, its
answer names the largest epoch that both may have and where that one ended (KIP-101, KIP-279, KIP-595).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.storage.leader_epochs import LeaderEpochs


@dataclass(frozen=True, slots=True)
class Truncate:
    """Remove this offset and all behind it."""

    offset: int


@dataclass(frozen=True, slots=True)
class Restart:
    """Nothing here is of use: forget it all and begin at this offset."""

    offset: int


def truncation_point(epochs: LeaderEpochs, end_offset: int, leader_epoch: int, leader_end: int) -> int:
    """Up to where this log may agree with a leader whose `leader_epoch` ended at `leader_end`.

    Always below `end_offset` for an epoch and an end that a leader names, so that asking again comes to an end.
    """
    epoch, end = epochs.end_of(leader_epoch, end_offset)
    if epoch < 0:
        end = end_offset
    return min(end, leader_end)


def when_out_of_range(end_offset: int, leader_start: int, leader_end: int) -> Truncate | Restart:
    """What to do when the leader has no place for `end_offset`, given what it has."""
    if end_offset > leader_end:
        return Truncate(leader_end)
    # Either the leader has deleted what would come next, or it knows nothing of the epoch that ours ends with.
    return Restart(leader_start)


def followed_high_watermark(own: int, leader_high_watermark: int, end_offset: int) -> int:
    """What a follower may take for committed: what its leader does, as far as it has it."""
    return max(own, min(leader_high_watermark, end_offset))
