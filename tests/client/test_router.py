"""The router: choice of brokers, and lost brokers."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from ottla.client.errors import (
    ClientClosed,
    ConnectFailed,
    ConnectionLost,
    RequestTimedOut,
)
from ottla.client.router import Purpose
from ottla.core.errors import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.metadata import MetadataRequest

from .fake_broker import FakeBroker, HangUp, serving, topic
from .routing import BEAT, routing
from .running import run

# Connections


def test_each_purpose_and_owner_has_its_own_connection() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker), routing(broker) as router:
            again = [await router.connection(0, purpose) for purpose in Purpose for _ in range(2)]
            assert len(set(again)) == len(Purpose)
            assert await router.connection(0, Purpose.FETCH, owner="me") not in again

    run(scenario())


def test_concurrent_requests_share_a_connection_attempt() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker), routing(broker) as router:
            asked = [asyncio.create_task(router.connection(0, Purpose.PUSH)) for _ in range(5)]
            await asyncio.sleep(0)
            asked[0].cancel()
            assert len({await each for each in asked[1:]}) == 1

    run(scenario())


def test_a_lost_connection_is_opened_again() -> None:
    async def scenario() -> None:
        broker = FakeBroker({HeartbeatRequest: lambda _: HeartbeatResponse(error_code=0)})
        async with serving(broker), routing(broker) as router:
            first = await router.connection(0, Purpose.GROUP)
            broker.cut_connections()
            await first.closed
            second = await router.connection(0, Purpose.GROUP)
            assert second is not first
            assert (await second.ask(BEAT)).error_code == 0

    run(scenario())


def test_an_unknown_broker_is_an_error() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker), routing(broker) as router:
            with pytest.raises(ConnectFailed, match=r"broker 7 is not in the cluster: \[0\]"):
                await router.connection(7, Purpose.ASK)

    run(scenario())


def test_a_moved_broker_is_contacted_at_its_new_address() -> None:
    async def scenario() -> None:
        old, new = FakeBroker(node_id=0), FakeBroker(node_id=0)
        async with serving(old), serving(new), routing(old) as router:
            before = await router.connection(0, Purpose.PUSH)
            old.brokers = [new]
            await router.refresh([])
            assert (await router.connection(0, Purpose.PUSH)).address.port == new.port
            assert before.is_open  # it is also a bootstrap address, which may still be right

            new.brokers = [old]
            await router.refresh([])
            moved = await router.connection(0, Purpose.PUSH)
            assert moved.address.port == old.port

    run(scenario())


# Asking


def test_without_a_named_broker_any_is_used_and_failing_ones_are_skipped() -> None:
    async def scenario() -> None:
        def hang_up(_: ListGroupsRequest) -> None:
            raise HangUp

        first, second = FakeBroker({ListGroupsRequest: hang_up}, node_id=0), FakeBroker(node_id=1)
        second.handlers[ListGroupsRequest] = lambda _: ListGroupsResponse(error_code=0, groups=())
        async with serving(first, second), routing(first) as router:
            for _ in range(4):
                assert (await router.ask(ListGroupsRequest())).error_code == 0
            assert second.count(ListGroupsRequest) == 4

    run(scenario())


def test_a_named_broker_is_not_replaced_by_another() -> None:
    async def scenario() -> None:
        def hang_up(_: HeartbeatRequest) -> None:
            raise HangUp

        first, second = FakeBroker({HeartbeatRequest: hang_up}, node_id=0), FakeBroker(node_id=1)
        async with serving(first, second), routing(first) as router:
            with pytest.raises(ConnectionLost):
                await router.ask(BEAT, node_id=0)
            assert second.count(HeartbeatRequest) == 0

    run(scenario())


def test_a_request_that_timed_out_is_not_sent_to_another_broker() -> None:
    async def scenario() -> None:
        brokers = [FakeBroker({ListGroupsRequest: lambda _: None}, node_id=node) for node in (0, 1)]
        async with serving(*brokers), routing(brokers[0]) as router:
            with pytest.raises(RequestTimedOut):
                await router.ask(ListGroupsRequest(), timeout_s=0.02)
            assert sum(broker.count(ListGroupsRequest) for broker in brokers) == 1

    run(scenario())


def test_when_all_known_brokers_are_lost_the_bootstrap_servers_are_used_again() -> None:
    async def scenario() -> None:
        given, other = FakeBroker(node_id=0), FakeBroker(node_id=1)
        async with serving(given):
            await other.start()
            given.brokers = [other]
            async with routing(given) as router:
                assert list(router.view.brokers) == [1]
                await other.stop()
                given.brokers = [given]
                await router.refresh([])
                assert list(router.view.brokers) == [0]

    run(scenario())


def test_a_stuck_broker_does_not_block_metadata_refreshes() -> None:
    async def scenario() -> None:
        stuck, well = FakeBroker(node_id=0), FakeBroker(node_id=1)
        async with serving(stuck, well), routing(stuck, connect_timeout_ms=50) as router:
            await router.connection(0, Purpose.ASK)
            stuck.handlers[MetadataRequest] = lambda _: None
            well.topics = {"a": topic("a")}
            for _ in range(3):
                await router.refresh(["a"])
            assert list(router.view.topics) == ["a"]
            # After a timeout, others come first.
            assert stuck.count(MetadataRequest) <= 2

    run(scenario())


@pytest.mark.parametrize("change", [{"brokers": ()}, {"error_code": ErrorCode.REBOOTSTRAP_REQUIRED}])
def test_metadata_of_a_broker_that_does_not_know_its_cluster_is_ignored(change: dict[str, Any]) -> None:
    async def scenario() -> None:
        lost, well = FakeBroker(node_id=0), FakeBroker(node_id=1)
        lost.handlers[MetadataRequest] = lambda request: msgspec.structs.replace(lost.metadata(request), **change)
        async with serving(lost, well):
            async with routing(lost, well) as router:
                assert sorted(router.view.brokers) == [0, 1]
            with pytest.raises(ConnectFailed, match="does not know its cluster"):
                async with routing(lost):
                    pass

    run(scenario())


# Closing


def test_closing_ends_waiting_calls() -> None:
    async def scenario() -> None:
        broker = FakeBroker({HeartbeatRequest: lambda _: None})
        async with serving(broker), routing(broker) as router:
            await router.connection(0, Purpose.ASK)
            broker.handlers[MetadataRequest] = lambda _: None
            waiting = [
                asyncio.create_task(router.ask(BEAT, node_id=0)),
                asyncio.create_task(router.refresh([])),
                asyncio.create_task(router.topic("a")),
            ]
            await broker.until_asked(HeartbeatRequest)
            opening = asyncio.create_task(router.connection(0, Purpose.PUSH))
            await asyncio.sleep(0)
            await router.close()
            for task in (*waiting, opening):
                with pytest.raises(ClientClosed):
                    await task
            for late in (router.refresh([]), router.ask(BEAT, node_id=0), router.topic("b")):
                with pytest.raises(ClientClosed):
                    await late

    run(scenario())
