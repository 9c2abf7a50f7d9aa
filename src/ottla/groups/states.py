"""The states of groups, by Kafka's names, and the transitions of a classic group.

Empty ── a member joins ──▶ PreparingRebalance ── all have joined, or time is up ──▶ CompletingRebalance
  ▲                          │            ▲  ▲                                        │            │
  └──── no members left ─────┘            │  └── a member joins, leaves or is lost ───┘            │
                                          │                                     the leader has assigned
                                          │                                                        ▼
                                          └──── a member joins, leaves or is lost ───────────── Stable

A consumer group is Empty, Assigning, Reconciling or Stable, derived from its epochs (consumer/state.py).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class State(StrEnum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    ASSIGNING = "Assigning"
    """A consumer group: the target assignment is not computed yet."""
    RECONCILING = "Reconciling"
    """A consumer group: members are converging to the target assignment."""
    DEAD = "Dead"


ALLOWED_PREDECESSORS: Final[Mapping[State, frozenset[State]]] = {
    State.EMPTY: frozenset({State.PREPARING_REBALANCE}),
    State.PREPARING_REBALANCE: frozenset({State.EMPTY, State.COMPLETING_REBALANCE, State.STABLE}),
    State.COMPLETING_REBALANCE: frozenset({State.PREPARING_REBALANCE}),
    State.STABLE: frozenset({State.COMPLETING_REBALANCE}),
    State.DEAD: frozenset(State),
}
