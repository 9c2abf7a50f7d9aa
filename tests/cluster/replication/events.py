"""Replication events shared by all models."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from .world import NODES, World

node = st.sampled_from(NODES)


class ReplicationEvents(RuleBasedStateMachine):
    world: World

    @rule(number=node)
    def a_record_is_produced(self, number: int) -> None:
        self.world.append(number)

    @rule(number=node)
    def a_node_hears_of_the_newest_state(self, number: int) -> None:
        self.world.learn(number)

    @rule(ms=st.sampled_from([1, 400, 1500]))
    def time_passes(self, ms: int) -> None:
        self.world.tick(ms)

    @rule(number=node, is_answered=st.booleans())
    def a_change_of_the_isr_is_written(self, number: int, is_answered: bool) -> None:  # noqa: FBT001
        self.world.write_proposal(number, is_answered=is_answered)

    @rule(number=node, lost=st.integers(0, 3))
    def a_node_is_killed(self, number: int, lost: int) -> None:
        self.world.crash(number, high_watermark_lost=lost)

    @rule(number=node)
    def a_session_ends(self, number: int) -> None:
        self.world.expire(number)

    @rule(number=node)
    def a_node_starts_again(self, number: int) -> None:
        self.world.restart(number)

    @rule(number=node)
    def another_is_elected(self, number: int) -> None:
        self.world.elect(number)
