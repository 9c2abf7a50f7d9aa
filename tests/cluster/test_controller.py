"""Controllers and nodes on a real ZooKeeper: controller election, registration and fencing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ottla.cluster.catalog_nodes import Layout
from ottla.cluster.controller import Controller, Deposed
from ottla.cluster.decisions import ChangeState, DeleteState
from ottla.cluster.nodes import partition_path
from ottla.cluster.state import NO_NODE, InvalidUpdateVersion, Losses, PartitionKey
from ottla.core.errors import ConfigError, NotLeaderOrFollower
from ottla.storage.catalog.catalog import edit_keys
from ottla.storage.catalog.entries import ConfigResource, ConfigScope

from .nodes import TestNode, cluster_of

if TYPE_CHECKING:
    from ottla.cluster.state import PartitionState
    from ottla.core.ids import TopicId


async def create(node: TestNode, name: str, partitions: int, factor: int) -> TopicId:
    topic = await node.cluster.work(lambda: node.catalog.create_topic(name, partitions, layout=Layout(factor)))
    await node.cluster.until_led(topic.id, partitions, 20_000)
    return topic.id


async def drain(node: TestNode, node_id: int, value: str) -> None:
    resource = ConfigResource(ConfigScope.BROKER, str(node_id))
    await node.cluster.work(lambda: node.catalog.change_configs(resource, edit_keys({"broker.draining": value})))


def states(node: TestNode) -> list[PartitionState]:
    return sorted(node.cluster.view.partitions.values(), key=lambda state: (state.topic, state.partition))


def test_every_node_sees_the_same_cluster(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 3) as nodes:
            await create(nodes[1], "t", 6, 3)
            for node in nodes:
                await node.until(lambda node=node: len(states(node)) == 6)
                assert states(node) == states(nodes[1])
                assert set(node.cluster.view.brokers) == {1, 2, 3}
                assert node.cluster.view.controller_id == nodes[0].cluster.view.controller_id
            assert sorted(state.leader for state in states(nodes[0])) == [1, 1, 2, 2, 3, 3]
            assert sum(node.cluster.control.is_controller for node in nodes) == 1

    asyncio.run(scenario())


def test_when_the_controller_dies_another_takes_over_its_role_and_partitions(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 3) as nodes:
            topic_id = await create(nodes[0], "t", 6, 3)
            dead = next(node for node in nodes if node.cluster.control.is_controller)
            nodes.remove(dead)
            dead_id = dead.cluster.node_id
            await dead.die()

            survivor = nodes[0]
            await survivor.until(
                lambda: len(states(survivor)) == 6 and all(dead_id not in state.isr for state in states(survivor))
            )
            assert survivor.cluster.view.controller_id not in (dead_id, NO_NODE)
            assert all(state.leader not in (dead_id, NO_NODE) for state in states(survivor))
            await create(survivor, "after", 1, 2)
            assert PartitionKey(topic_id, 0) in survivor.cluster.view.partitions

    asyncio.run(scenario())


def test_a_controller_whose_election_was_not_answered_is_elected_again(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 1) as [node]:
            await create(node, "before", 1, 1)
            # As if the response had been lost.
            node.cluster.control._controller = None
            node.cluster.control._wake.set()

            await create(node, "after", 1, 1)

    asyncio.run(scenario())


def test_a_controller_that_does_not_know_a_topic_yet_keeps_its_partitions(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 1) as [node]:
            topic_id = await create(node, "t", 2, 1)
            controller = Controller(
                node.connected.store, node.connected.mirror, node.cluster.knowledge.controller_version
            )
            orphans = [DeleteState(PartitionKey(topic_id, index)) for index in range(2)]

            await node.cluster.work(lambda: controller.carry_out(list(orphans)))
            assert len(states(node)) == 2

            await node.cluster.work(lambda: node.catalog.delete_topic(topic_id))
            await node.cluster.work(lambda: controller.carry_out(list(orphans)))
            read = node.connected.store.read
            assert [await node.cluster.work(lambda key=step.key: read(partition_path(key))) for step in orphans] == [
                None,
                None,
            ]

    asyncio.run(scenario())


def test_a_deposed_controller_can_change_nothing(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 2) as nodes:
            await create(nodes[0], "t", 1, 2)
            first = next(node for node in nodes if node.cluster.control.is_controller)
            other = next(node for node in nodes if node is not first)
            connected = first.connected
            # With the epoch of its election, which it believes to be current.
            deposed = Controller(connected.store, connected.mirror, first.cluster.knowledge.controller_version)
            nodes.remove(first)
            await first.cluster.control.stop()
            await other.until(lambda: other.cluster.view.controller_id == other.cluster.node_id)

            before = states(first)[0]
            with pytest.raises(Deposed):
                await first.cluster.work(
                    lambda: deposed.carry_out([ChangeState(before, replace(before, leader=99, leader_epoch=99))])
                )
            assert states(other)[0].leader != 99
            await first.stop()

    asyncio.run(scenario())


def test_a_cleanly_stopping_node_hands_over_leadership_first(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 3) as nodes:
            await create(nodes[0], "t", 6, 3)
            leaving = nodes.pop(1)
            await leaving.until(lambda: len(states(leaving)) == 6)
            await leaving.stop()

            await nodes[0].until(lambda: 2 not in nodes[0].cluster.view.brokers)
            assert all(2 not in (state.leader, *state.isr) for state in states(nodes[0]))

    asyncio.run(scenario())


def test_a_node_that_returns_after_a_crash_is_not_in_sync(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 2) as nodes:
            await create(nodes[0], "t", 4, 2)
            # The entry of the crashed process is still there: the same folder may take its place at once.
            again = TestNode(zookeeper, 2, folder=nodes[1].folder)
            await again.start(Losses(has_crashed=True))

            assert all((state.leader, state.isr) == (1, (1,)) for state in states(again))
            assert again.cluster.view.brokers[2].epoch > 0
            await again.stop()

    asyncio.run(scenario())


def test_two_nodes_cannot_have_the_same_id(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 1):
            twin = TestNode(zookeeper, 1, session_timeout_ms=2000)
            twin.folder.id = "another folder"
            with pytest.raises(ConfigError, match="node id 1"):
                await twin.start()
            twin.cluster.close()

    asyncio.run(scenario())


def test_only_the_leader_can_change_the_isr(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 3) as nodes:
            topic_id = await create(nodes[0], "t", 1, 3)
            key = PartitionKey(topic_id, 0)
            state = states(nodes[0])[0]
            leader = next(node for node in nodes if node.cluster.node_id == state.leader)
            other = next(node for node in nodes if node is not leader)
            await leader.until(lambda: states(leader) == states(nodes[0]))
            await other.until(lambda: states(other) == states(nodes[0]))

            shrunk = await leader.cluster.change_isr(
                key, leader.epochs(state.leader), state.leader_epoch, state.version
            )
            assert shrunk.isr == (state.leader,)
            assert shrunk.leader_epoch == state.leader_epoch
            with pytest.raises(InvalidUpdateVersion):
                await leader.cluster.change_isr(key, leader.epochs(1, 2, 3), state.leader_epoch, state.version)
            with pytest.raises(NotLeaderOrFollower):
                await other.cluster.change_isr(key, leader.epochs(1, 2, 3), state.leader_epoch, shrunk.version)
            with pytest.raises(NotLeaderOrFollower):
                await leader.cluster.change_isr(key, leader.epochs(1, 2, 3), state.leader_epoch - 1, shrunk.version)

    asyncio.run(scenario())


def test_a_partition_moves_when_its_new_replicas_are_in_sync(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 3) as nodes:
            node = nodes[0]
            topic_id = await create(node, "t", 1, 1)
            key = PartitionKey(topic_id, 0)
            held_by = states(node)[0].leader
            leader = next(each for each in nodes if each.cluster.node_id == held_by)
            others = [each for each in (1, 2, 3) if each != held_by]
            await node.cluster.alter_reassignments({key: others})
            await leader.until(lambda: states(leader) and states(leader)[0].is_reassigning)
            state = states(leader)[0]
            assert set(state.replicas) == {1, 2, 3}

            await leader.cluster.change_isr(key, leader.epochs(1, 2, 3), state.leader_epoch, state.version)
            await node.until(lambda: not states(node)[0].is_reassigning)
            assert states(node)[0].replicas == tuple(others)
            assert states(node)[0].leader == others[0]

    asyncio.run(scenario())


def test_a_preferred_leader_leads_again_when_asked_to(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 2) as nodes:
            node = nodes[0]
            topic_id = await create(node, "t", 1, 2)
            state = states(node)[0]
            await node.cluster.alter_reassignments({state.key: tuple(reversed(state.replicas))})
            elected = await node.cluster.elect_leader(PartitionKey(topic_id, 0))

            assert elected.leader == state.replicas[1]
            assert elected.leader_epoch == state.leader_epoch + 1

    asyncio.run(scenario())


def test_a_draining_node_gets_no_partitions_and_leads_none(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 3) as nodes:
            node = nodes[0]
            await create(node, "t", 3, 3)
            await drain(node, 2, "true")
            await node.until(lambda: all(state.leader != 2 for state in states(node)))
            await create(node, "new", 4, 2)

            assert all(2 not in state.replicas for state in states(node) if state.topic == "new")
            await drain(node, 2, "false")
            assert not node.cluster.view.brokers[2].is_draining

    asyncio.run(scenario())


def test_nothing_is_left_of_a_deleted_topic(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 2) as nodes:
            node = nodes[0]
            topic_id = await create(node, "t", 3, 2)
            await node.cluster.work(lambda: node.catalog.delete_topic(topic_id))
            assert states(node) == []
            await node.until(lambda: not node.cluster.knowledge.orphans)
            gone = f"/partitions/{topic_id}"
            for _ in range(100):
                if await node.cluster.work(lambda: node.connected.store.read(gone)) is None:
                    break
            else:
                pytest.fail("the folder of its partitions is still there")

    asyncio.run(scenario())
