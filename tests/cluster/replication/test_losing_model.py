"""Elections and eligible replicas (KIP-966) under every order of losses and returns."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from ottla.cluster.state import NO_NODE

from .events import ReplicationEvents, node
from .losing import LosingWorld
from .world import NODES

pytestmark = pytest.mark.timeout(1800)  # with many examples

_EXAMPLES = int(os.environ.get("MODEL_EXAMPLES", "100"))


class Losses(ReplicationEvents):
    world: LosingWorld

    def __init__(self) -> None:
        super().__init__()
        self.world = LosingWorld()

    @rule(number=node)
    def a_record_is_produced_and_replicated(self, number: int) -> None:
        """Replicate to all nodes but one, if they can."""
        world = self.world
        if world.state.leader == NO_NODE:
            return
        for each in NODES:
            world.learn(each)
        world.append(world.state.leader)
        for _ in range(3):
            for other in NODES:
                if other != number:
                    world.fetch(other, most=10)
                    world.receive(other)

    @rule(number=node, most=st.integers(1, 4))
    def a_follower_copies(self, number: int, most: int) -> None:
        self.world.receive(number)
        self.world.fetch(number, most)

    @rule(number=node, is_answered=st.booleans())
    def a_follower_falls_behind(self, number: int, is_answered: bool) -> None:  # noqa: FBT001
        world = self.world
        leader = world.state.leader
        if leader == NO_NODE:
            return
        for each in NODES:
            world.learn(each)
        for _ in range(3):
            world.append(leader)
            for other in set(NODES) - {number}:
                world.fetch(other, most=10)
                world.receive(other)
                world.fetch(other, most=10)
            world.tick(600)
        world.write_proposal(leader, is_answered=is_answered)

    @rule(number=node, entries=st.integers(1, 4))
    def a_machine_loses_power(self, number: int, entries: int) -> None:
        self.world.lose_power(number, entries)

    @rule(number=node)
    def a_disk_is_lost(self, number: int) -> None:
        self.world.lose_disk(number)

    @rule(number=node)
    def a_node_stops(self, number: int) -> None:
        self.world.stop(number)

    @rule(number=node)
    def a_session_begins_again(self, number: int) -> None:
        self.world.register_again(number)

    @invariant()
    def no_committed_record_is_lost_while_a_replica_that_may_lead_has_it(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        world = self.world
        world.settle()
        world.check()
        if world.state.leader == NO_NODE:
            assert not world.entitled, "an eligible replica does not lead"
            return
        logs = [each.log for each in world.nodes]
        assert logs[0] == logs[1] == logs[2], "the replicas are not the same"
        assert (sorted(world.state.isr), world.state.eligible) == (list(NODES), ())


TestLosses = Losses.TestCase
TestLosses.settings = settings(max_examples=_EXAMPLES, stateful_step_count=60, deadline=None)
