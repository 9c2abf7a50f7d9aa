"""The states of groups, by the names Kafka shows, and which may follow which in a classic group.

Empty ── a member joins ──▶ PreparingRebalance ── all have joined, or time is up ──▶ CompletingRebalance
  ▲                          │            ▲  ▲                                        │            │
  └───── nobody is left ─────┘            │  └── a member joins, leaves or is lost ───┘            │
                                          │                                     the leader has assigned
                                          │                                                        ▼
                                          └──── a member joins, leaves or is lost ───────────── Stable

A consumer group is Empty, Assigning, Reconciling or Stable: what follows from its epochs (consumer/state.py).
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
    """Of a consumer group: who is to have what is not worked out yet."""
    RECONCILING = "Reconciling"
    """Of a consumer group: members are on their way to what they are to have."""
    DEAD = "Dead"


FOLLOWS: Final[Mapping[State, frozenset[State]]] = {
    State.EMPTY: frozenset({State.PREPARING_REBALANCE}),
    State.PREPARING_REBALANCE: frozenset({State.EMPTY, State.COMPLETING_REBALANCE, State.STABLE}),
    State.COMPLETING_REBALANCE: frozenset({State.PREPARING_REBALANCE}),
    State.STABLE: frozenset({State.COMPLETING_REBALANCE}),
    State.DEAD: frozenset(State),
}
