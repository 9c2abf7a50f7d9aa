"""Replication throttling: the rule, and its effect between brokers."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
from tests.cluster.memory import Brokers, brokers_of, until
from tests.cluster.test_replication import batch, in_loop

from ottla import Producer
from ottla.broker.replication.throttling import Throttling
from ottla.cluster.replication.throttle import Throttle, is_listed
from ottla.core.errors import ErrorCode
from ottla.storage.catalog.entries import ConfigResource, ConfigScope
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.broker.replication.replica import Replica
    from ottla.testing import EphemeralCluster

RATE = 400_000
BATCHES = 20
BATCH_BYTES = 20_000
SIDES = {"leader": 1, "follower": 3}


def test_more_bytes_are_allowed_once_the_debt_is_paid_off() -> None:
    throttle = Throttle()
    assert throttle.wait_s(100, now_s=10) == 0
    throttle.took(250, 100, now_s=10)
    assert throttle.wait_s(100, now_s=10) == 2.5
    assert throttle.wait_s(100, now_s=12) == 0.5
    throttle.took(100, 100, now_s=12)
    assert throttle.wait_s(100, now_s=12.5) == 1.0
    assert throttle.wait_s(1000, now_s=12.5) == 0  # at a rate raised meanwhile
    assert throttle.wait_s(0, now_s=12.5) == float("inf")
    assert throttle.wait_s(100, now_s=13.5) == 0


def test_a_replica_is_listed_by_partition_and_node() -> None:
    assert is_listed(("0:1", "2:3"), 2, 3)
    assert not is_listed(("0:1", "2:3"), 0, 3)
    assert is_listed(("*",), 7, 7)
    assert not is_listed((), 0, 1)


async def fill(brokers: Brokers) -> None:
    for _ in range(BATCHES):
        data = PartitionProduceData(index=0, records=batch(bytes(BATCH_BYTES)))
        topic = TopicProduceData(name="t", partition_data=(data,))
        answer = await brokers.ask(1, ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=(topic,)), 12)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def throttle_node_3(brokers: Brokers, side: str) -> None:
    node = SIDES[side]
    for broker in brokers.running.values():
        configs = {f"{side}.replication.throttled.replicas": f"0:{node}"}
        broker.topics.configure(broker.topics.by_name["t"], lambda _: configs)  # noqa: B023 - called at once
    resource = ConfigResource(ConfigScope.BROKER, str(node))
    brokers[node].change_configs(resource, lambda _: {f"{side}.replication.throttled.rate": str(RATE)})


@pytest.mark.parametrize("side", SIDES)
@in_loop
async def test_a_replica_that_catches_up_is_throttled_and_one_in_sync_is_not(tmp_path: Path, side: str) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1, isr=[1, 2])
        await brokers[3].replication.stop()  # type: ignore[union-attr]
        await fill(brokers)
        whole = brokers.log(1).size
        throttle_node_3(brokers, side)
        await brokers.end_process(3)
        await brokers.start(3)
        before, began_s = brokers.log(3).size, time.monotonic()

        await fill(brokers)  # each acknowledged by the in-sync node
        assert brokers.log(2).next_offset == 2 * BATCHES
        taken_s = time.monotonic() - began_s
        assert brokers.log(3).size - before <= RATE * taken_s + RATE, "throttled, except for one fetch"

        await until(lambda: brokers.log(3).next_offset == 2 * BATCHES)
        taken_s = time.monotonic() - began_s
        assert taken_s > (2 * whole - before - RATE) / RATE, f"{2 * whole - before} bytes in {taken_s:.2f} s"
        await until(lambda: 3 in brokers.state().isr)


@in_loop
async def test_a_removed_throttle_takes_effect_soon(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1, isr=[1, 2])
        await brokers[3].replication.stop()  # type: ignore[union-attr]
        await fill(brokers)
        throttle_node_3(brokers, "follower")
        resource = ConfigResource(ConfigScope.BROKER, "3")
        brokers[3].change_configs(resource, lambda _: {"follower.replication.throttled.rate": "1"})
        await brokers.end_process(3)
        await brokers.start(3)
        await until(lambda: brokers.log(3).next_offset > 0)
        assert brokers.log(3).next_offset < BATCHES

        brokers[3].change_configs(resource, lambda _: {})
        async with asyncio.timeout(10):
            await until(lambda: brokers.log(3).next_offset == BATCHES)


def test_a_partition_whose_throttle_ends_during_planning_is_fetched(
    ottla_cluster: EphemeralCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: set[Replica] = set()

    def wait_that_ends_at_the_second_call_s(_: Throttling, replica: Replica) -> float:
        wait_s = 0.0 if replica in looked_at else 0.001
        looked_at.add(replica)
        return wait_s

    monkeypatch.setattr(Throttling, "wait_to_fetch_s", wait_that_ends_at_the_second_call_s)
    monkeypatch.setattr(Throttling, "fetched", lambda _, replica, __: looked_at.discard(replica))

    ottla_cluster.create_topic("t", configs={"min.insync.replicas": "3"})
    with Producer(ottla_cluster.bootstrap_servers, delivery_timeout_ms=10_000) as producer:
        for _ in range(5):
            producer.send("t", b"copied").result()
