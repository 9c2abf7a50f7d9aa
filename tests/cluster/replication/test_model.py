"""The replication rules under every order of events: nothing acknowledged is lost, nothing read changes."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ottla.cluster.state import NO_NODE

from .world import NODES, World

pytestmark = pytest.mark.timeout(1800)  # with many examples

node = st.sampled_from(NODES)
_EXAMPLES = int(os.environ.get("MODEL_EXAMPLES", "100"))


class Replicas(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @rule(number=node)
    def a_producer_sends(self, number: int) -> None:
        self.world.append(number)

    @rule(number=node, most=st.integers(1, 4))
    def a_follower_asks(self, number: int, most: int) -> None:
        self.world.fetch(number, most)

    @rule(number=node)
    def an_answer_arrives(self, number: int) -> None:
        self.world.receive(number)

    @rule(number=node, most=st.integers(1, 4))
    def a_follower_copies(self, number: int, most: int) -> None:
        for _ in range(2):
            self.world.fetch(number, most)
            self.world.receive(number)

    @rule(number=node, is_answered=st.booleans())
    def a_follower_falls_behind(self, number: int, is_answered: bool) -> None:  # noqa: FBT001
        world = self.world
        if world.state.leader == NO_NODE:
            return
        for _ in range(3):
            world.append(world.state.leader)
            for other in set(NODES) - {number}:
                world.fetch(other, most=10)
                world.receive(other)
                world.fetch(other, most=10)
            world.tick(600)
        world.write_proposal(world.state.leader, is_answered=is_answered)

    @rule(number=node)
    def a_node_loses_its_disk(self, number: int) -> None:
        if self.world.state.isr != (number,):
            self.world.crash(number)
            self.world.restart(number, is_wiped=True)

    @rule(number=node)
    def a_node_hears_of_the_newest_state(self, number: int) -> None:
        self.world.learn(number)

    @rule(ms=st.sampled_from([1, 400, 1500]))
    def time_passes(self, ms: int) -> None:
        self.world.tick(ms)

    @rule(number=node, is_answered=st.booleans())
    def a_change_of_the_in_sync_set_is_written(self, number: int, is_answered: bool) -> None:  # noqa: FBT001
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

    @invariant()
    def all_that_was_acknowledged_is_on_every_replica_in_sync(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        world = self.world
        world.settle()
        logs = [each.log for each in world.nodes]
        assert logs[0] == logs[1] == logs[2], "the replicas have not come together"
        assert sorted(world.state.isr) == list(NODES)
        world.check()


TestReplicas = Replicas.TestCase
TestReplicas.settings = settings(max_examples=_EXAMPLES, stateful_step_count=60, deadline=None)
