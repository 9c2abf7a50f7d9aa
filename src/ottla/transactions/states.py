"""The states of a transactional id, with Kafka's codes, and their transitions.

Empty ── a partition is added ──▶ Ongoing ── commit ──▶ PrepareCommit ── markers are written ──▶ CompleteCommit
  ▲                                  │                                                             │
  │                                  └── abort, or time is up ──▶ PrepareAbort ──▶ CompleteAbort   │
  └───────────── InitProducerId ────────────────────────────────────────────────────┴──────────────┘

From a Complete state the next transaction starts as from Empty. An empty transaction may be aborted from any of
the three (KIP-890), to bump the producer's epoch.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class State(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def shown(self) -> str:
        """Its name in Kafka's tools."""
        return self.name.title().replace("_", "")

    @property
    def is_ending(self) -> bool:
        """Whether the outcome is decided, but end markers may be missing."""
        return self in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        return self in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


_IDLE_FOLLOWED_BY: Final = frozenset({State.EMPTY, State.ONGOING, State.PREPARE_ABORT})

ALLOWED_PREDECESSORS: Final[Mapping[State, frozenset[State]]] = {
    State.EMPTY: _IDLE_FOLLOWED_BY,
    State.ONGOING: frozenset({State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT}),
    State.PREPARE_COMMIT: frozenset({State.COMPLETE_COMMIT}),
    State.PREPARE_ABORT: frozenset({State.COMPLETE_ABORT}),
    State.COMPLETE_COMMIT: _IDLE_FOLLOWED_BY,
    State.COMPLETE_ABORT: _IDLE_FOLLOWED_BY,
}
"""The allowed predecessors of each state."""
