"""Fetches of an earlier registration do not let a broker join the ISR (KIP-903)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ottla.cluster.registration import fence
from ottla.cluster.replication.leading import NO_EPOCH, NO_OFFSET
from ottla.cluster.state import NO_NODE, BrokerInfo, InvalidUpdateVersion, Losses
from ottla.core.errors import ErrorCode
from ottla.core.ids import Address
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState

from .memory import brokers_of, until
from .nodes import TestFolder, TestNode, cluster_of
from .test_controller import create, states
from .test_replication import in_loop, produce

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.core.ids import TopicId


def as_follower(topic_id: TopicId, node: int, broker_epoch: int, offset: int) -> FetchRequest:
    wanted = FetchPartition(
        partition=0, fetch_offset=offset, log_start_offset=0, partition_max_bytes=1 << 20, current_leader_epoch=0
    )
    return FetchRequest(
        replica_state=ReplicaState(replica_id=node, replica_epoch=broker_epoch),
        max_wait_ms=0,
        min_bytes=1,
        topics=(FetchTopic(topic_id=topic_id.raw, partitions=(wanted,)),),
    )


@in_loop
async def test_a_leader_does_not_count_the_fetch_of_an_earlier_registration(tmp_path: Path) -> None:
    async with brokers_of(tmp_path, 2) as brokers:
        brokers.place(leader=1)
        brokers.catalog.change(brokers.key, replicas=(1, 2, 3))
        brokers.catalog.register(BrokerInfo(3, {"PLAINTEXT": Address("127.0.0.1", 1)}, epoch=7))
        assert (await produce(brokers, 1, b"v")).error_code == ErrorCode.NONE

        await brokers.ask(1, as_follower(brokers.topic_id, 3, 6, offset=1), 17)
        heard_from = brokers.replica(1).leading.followers[3]
        assert heard_from.end_offset == NO_OFFSET
        assert brokers.state().isr == (1, 2)

        await brokers.ask(1, as_follower(brokers.topic_id, 3, 7, offset=1), 17)
        await until(lambda: 3 in brokers.state().isr)


@in_loop
async def test_a_restarted_node_fetches_without_the_epoch_of_its_earlier_process_until_it_is_registered(
    tmp_path: Path,
) -> None:
    async with brokers_of(tmp_path, 1) as brokers:
        brokers.catalog.register(BrokerInfo(1, {"PLAINTEXT": Address("127.0.0.1", 1)}, epoch=7))
        replication = brokers.running[1].replication
        assert replication is not None
        await until(lambda: replication.present == {1: 7})
        assert replication.broker_epoch == NO_EPOCH

        replication.registered()

        assert replication.broker_epoch == 7


def test_a_restarted_node_does_not_join_by_its_earlier_fetches(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 2) as nodes:
            topic_id = await create(nodes[0], "t", 1, 2)
            state = states(nodes[0])[0]
            leader = nodes[state.leader - 1]
            other = 3 - state.leader
            heard = leader.epochs(1, 2)
            await leader.until(lambda: states(leader) == [state])
            alone = await leader.cluster.change_isr(state.key, {state.leader: -1}, 0, state.version)
            assert (alone.isr, alone.topic_id) == ((state.leader,), topic_id)

            # It restarts, and its leader does not know yet.
            await asyncio.to_thread(fence, nodes[other - 1].connected.store, other)
            with pytest.raises(InvalidUpdateVersion):
                await leader.cluster.change_isr(state.key, heard, 0, alone.version)
            assert states(leader)[0].isr == (state.leader,)

            # Now the leader knows.
            again = TestNode(zookeeper, other, folder=nodes[other - 1].folder)
            await again.start()
            await leader.until(
                lambda: other in leader.cluster.view.brokers and leader.epochs(other)[other] != heard[other]
            )
            kept = await leader.cluster.change_isr(state.key, heard, 0, alone.version)
            assert kept.isr == (state.leader,)
            joined = await leader.cluster.change_isr(state.key, leader.epochs(1, 2), 0, kept.version)
            assert set(joined.isr) == {1, 2}
            await again.stop()

    asyncio.run(scenario())


def test_a_node_that_lost_power_leaves_the_isr_to_absent_members(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 2) as nodes:
            await create(nodes[0], "t", 2, 2)
            await nodes[1].until(lambda: len(states(nodes[1])) == 2)
            synced, unsynced = (state.key for state in states(nodes[0]))
            for node in nodes:  # so that neither sees the other go
                await node.cluster.control.stop()
            for node in nodes:
                await node.die()
            folders = [node.folder for node in nodes]
            nodes.clear()

            lossy = TestNode(zookeeper, 1, folder=folders[0])
            await lossy.start(Losses(has_crashed=True, unsynced=frozenset({unsynced})))
            nodes.append(lossy)
            await lossy.until(lambda: lossy.cluster.view.partitions[synced].leader == 1)
            left = lossy.cluster.view.partitions[unsynced]
            assert (left.leader, left.isr) == (NO_NODE, (2,))

            whole = TestNode(zookeeper, 2, folder=folders[1])
            await whole.start(Losses(has_crashed=True))
            nodes.append(whole)
            await whole.until(lambda: whole.cluster.view.partitions[unsynced].leader == 2)

    asyncio.run(scenario())


def test_an_isr_has_the_folder_ids_of_its_members(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 2) as nodes:
            await create(nodes[0], "t", 1, 2)

            assert dict(states(nodes[0])[0].folders) == {1: "folder-1", 2: "folder-2"}

    asyncio.run(scenario())


def test_an_older_copy_of_a_folder_gets_another_id(zookeeper: str) -> None:
    async def scenario() -> None:
        async with cluster_of(zookeeper, 1) as nodes:
            started_with = nodes[0].folder.generation
        copy = TestNode(zookeeper, 1, folder=TestFolder("folder-1", started_with))
        assert copy.folder.is_new
        assert copy.cluster.folder_id != "folder-1"
        copy.cluster.close()

        whole = TestNode(zookeeper, 1, folder=nodes[0].folder)
        assert whole.cluster.folder_id == "folder-1"
        whole.cluster.close()

    asyncio.run(scenario())
