"""Roles of a replica: waiting appends in a new leader epoch, and whether all replicas are in sync."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.replication.replica import Replica
from ottla.broker.requests.waiting import Waiters
from ottla.core.errors import NotLeaderOrFollower

from ..making import partition

TWO_REPLICAS = partition((1, 2))


def led_by_node_1() -> Replica:
    log: Any = SimpleNamespace(next_offset=5, acknowledged_offset=5, start_offset=0)
    here: Any = SimpleNamespace(at="t-0", log=log, waits=Waiters(), role=None, min_insync_replicas=1, leader_epoch=0)
    config = SimpleNamespace(replica_lag_time_max_ms=1_000)
    node: Any = SimpleNamespace(node_id=1, config=config, present={}, is_fenced=False, now_ms=lambda: 0)
    replica = Replica(here, TWO_REPLICAS.key, node, 0)
    replica.become_leader(TWO_REPLICAS, 0)
    return replica


async def append_then_lead_alone_in(epoch: int) -> None:
    replica = led_by_node_1()
    assert replica.led is not None
    waiting = replica.led.replicated(4, 60.0)
    assert not waiting.done()

    replica.become_leader(replace(TWO_REPLICAS, replicas=(1,), isr=(1,), leader_epoch=epoch), 0)

    assert waiting.done()
    waiting.result()


def test_waiting_appends_complete_when_the_same_broker_leads_the_next_epoch() -> None:
    asyncio.run(append_then_lead_alone_in(1))


def test_waiting_appends_fail_when_another_broker_may_have_led_between() -> None:
    with pytest.raises(NotLeaderOrFollower):
        asyncio.run(append_then_lead_alone_in(2))


def test_a_leader_knows_whether_all_replicas_are_in_sync() -> None:
    replica = led_by_node_1()
    assert replica.led is not None
    assert replica.led.is_in_sync_everywhere

    replica.led.leading.changed(replace(TWO_REPLICAS, isr=(1,), version=TWO_REPLICAS.version + 1))
    assert not replica.led.is_in_sync_everywhere


def test_a_follower_knows_whether_all_replicas_are_in_sync_unless_it_is_fenced() -> None:
    replica = led_by_node_1()
    node: Any = replica._replication
    replica.become_follower(replace(TWO_REPLICAS, leader=2))
    assert replica.partition.role.is_in_sync_everywhere

    node.is_fenced = True
    assert not replica.partition.role.is_in_sync_everywhere
    node.is_fenced = False
    replica.become_follower(replace(TWO_REPLICAS, leader=2, isr=(2,)))
    assert not replica.partition.role.is_in_sync_everywhere
