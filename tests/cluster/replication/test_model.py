"""The replication rules under every order of events: nothing acknowledged is lost, nothing read changes."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from ottla.cluster.state import NO_NODE

from .events import ReplicationEvents, node
from .world import NODES, World

pytestmark = pytest.mark.timeout(1800)  # with many examples

_EXAMPLES = int(os.environ.get("MODEL_EXAMPLES", "100"))


class Replicas(ReplicationEvents):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()

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

    @invariant()
    def all_that_was_acknowledged_is_on_every_replica_in_sync(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        world = self.world
        world.settle()
        logs = [each.log for each in world.nodes]
        assert logs[0] == logs[1] == logs[2], "the replicas have not converged"
        assert sorted(world.state.isr) == list(NODES)
        world.check()


TestReplicas = Replicas.TestCase
TestReplicas.settings = settings(max_examples=_EXAMPLES, stateful_step_count=60, deadline=None)
