"""How a follower reconciles its log with its leader's: where to truncate, and when to start over.

A follower's fetch contains the leader epoch of its last record. If the leader's log diverges there, its
response has the largest epoch that both may have and its end offset (KIP-101, KIP-279, KIP-595).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.storage.leader_epochs import LeaderEpochs


@dataclass(frozen=True, slots=True)
class Truncate:
    """Truncate to this offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class Restart:
    """Discard the whole log and start at this offset."""

    offset: int


def truncation_point(epochs: LeaderEpochs, end_offset: int, leader_epoch: int, leader_end: int) -> int:
    """The offset up to which this log may agree with a leader whose `leader_epoch` ended at `leader_end`.

    Always below `end_offset` for an epoch and an end offset that a leader returns, so that the search terminates.
    """
    epoch, end = epochs.end_of(leader_epoch, end_offset)
    if epoch < 0:
        end = end_offset
    return min(end, leader_end)


def when_out_of_range(end_offset: int, leader_start: int, leader_end: int) -> Truncate | Restart:
    """How to continue when `end_offset` is out of the leader's range."""
    if end_offset > leader_end:
        return Truncate(leader_end)
    # Either the leader has deleted the next records, or it does not know the epoch of our last record.
    return Restart(leader_start)


def followed_high_watermark(own: int, leader_high_watermark: int, end_offset: int) -> int:
    """The follower's high watermark: its leader's, limited by its own end offset."""
    return max(own, min(leader_high_watermark, end_offset))
