"""The router: which broker is asked, when the view is refreshed, and what happens when brokers go."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ottla.client.addresses import parse_addresses
from ottla.client.config import ClientConfig
from ottla.client.errors import (
    AuthorizationFailed,
    BrokerError,
    ClientClosed,
    ConnectFailed,
    ConnectionLost,
    RequestTimedOut,
    UnknownTopic,
)
from ottla.client.router import Purpose, Router
from ottla.core.errors import ErrorCode
from ottla.core.ids import Address
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse

from .fake_broker import ALL_VERSIONS, FakeBroker, HangUp, serving, topic
from .running import run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

QUICK = {
    "metadata_refresh_retry_ms": 10,
    "metadata_refresh_retry_count": 2,
    "leader_election_retry_ms": 10,
    "backoff_first_ms": 1,
    "backoff_max_ms": 5,
}
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@asynccontextmanager
async def routing(*brokers: FakeBroker, **options: Any) -> AsyncIterator[Router]:
    config = ClientConfig(**{**QUICK, **options})
    router = Router(parse_addresses([broker.address for broker in brokers]), config)
    try:
        await router.start()
        yield router
    finally:
        await router.close()


async def next_change(router: Router) -> None:
    changed = asyncio.Event()
    unsubscribe = router.subscribe_to_changes(changed.set)
    async with asyncio.timeout(10):
        await changed.wait()
    unsubscribe()


# Finding the cluster


def test_one_broker_of_those_given_is_enough() -> None:
    async def scenario() -> None:
        broker, gone = FakeBroker(), FakeBroker()
        await gone.start()
        await gone.stop()
        async with serving(broker), routing(gone, broker) as router:
            assert router.view.cluster_id == "fake"
            assert list(router.view.brokers) == [0]

    run(scenario())


def test_if_nobody_is_there_the_error_names_each_address() -> None:
    async def scenario() -> None:
        router = Router(parse_addresses("127.0.0.1:1,127.0.0.1:2"), ClientConfig(**QUICK))
        with pytest.raises(ConnectFailed, match=r"127\.0\.0\.1:1: .*127\.0\.0\.1:2: "):
            await router.start()
        await router.close()

    run(scenario())


def test_a_cluster_that_comes_up_late_is_waited_for() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        await broker.start()
        await broker.stop()
        router = Router(parse_addresses(broker.address), ClientConfig(**{**QUICK, "metadata_refresh_retry_count": 0}))
        starting = asyncio.create_task(router.start())
        await asyncio.sleep(0)
        await broker.start(port=broker.port)
        await starting
        assert list(router.view.brokers) == [0]
        await router.close()
        await broker.stop()

    run(scenario())


def test_a_broker_that_is_known_by_another_name_keeps_no_second_connection() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker):
            router = Router(parse_addresses(f"localhost:{broker.port}"), ClientConfig(**QUICK))
            await router.start()
            first = Address("localhost", broker.port)
            assert router._connections.existing(first, Purpose.ASK) is None
            await router.refresh()
            assert router._connections.existing(first, Purpose.ASK) is None
            assert router._connections.existing(first._replace(host="127.0.0.1"), Purpose.ASK) is not None
            await router.close()

    run(scenario())


# The view


def test_those_who_ask_at_the_same_time_share_a_request() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        broker.topics = {name: topic(name) for name in "abc"}
        async with serving(broker), routing(broker) as router:
            before = broker.count(MetadataRequest)
            await asyncio.gather(*(router.refresh([name]) for name in "abcabc"))
            assert sorted(router.view.topics) == ["a", "b", "c"]
            assert broker.count(MetadataRequest) == before + 1

    run(scenario())


def test_those_who_ask_while_a_request_is_under_way_share_the_next() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        go_on = asyncio.Event()

        async def slowly(request: MetadataRequest) -> MetadataResponse:
            await go_on.wait()
            return broker.metadata(request)

        async with serving(broker), routing(broker) as router:
            broker.handlers[MetadataRequest] = slowly
            before = broker.count(MetadataRequest)
            first = asyncio.create_task(router.refresh([]))
            await broker.until_asked(MetadataRequest, before + 1)
            others = [asyncio.create_task(router.refresh([])) for _ in range(5)]
            go_on.set()
            await asyncio.gather(first, *others)
            assert broker.count(MetadataRequest) == before + 2

    run(scenario())


def test_one_who_gives_up_waiting_takes_nothing_from_the_others() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker), routing(broker) as router:
            impatient, patient = (asyncio.create_task(router.refresh([])) for _ in range(2))
            await asyncio.sleep(0)
            impatient.cancel()
            await patient
            assert impatient.cancelled()

    run(scenario())


def test_all_topics_are_asked_for_unless_some_are_named() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        broker.topics = {name: topic(name) for name in "ab"}
        async with serving(broker), routing(broker) as router:
            await router.refresh(["a"])
            assert list(router.view.topics) == ["a"]
            await router.refresh()
            assert sorted(router.view.topics) == ["a", "b"]

    run(scenario())


def test_what_is_marked_stale_is_refreshed_soon_with_all_that_is_watched() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        broker.topics = {name: topic(name) for name in "ab"}
        async with serving(broker), routing(broker) as router:
            router.watch(["a"])
            router.mark_stale()
            await next_change(router)
            assert list(router.view.topics) == ["a"]
            router.watch(None)
            router.mark_stale()
            await next_change(router)
            assert sorted(router.view.topics) == ["a", "b"]

    run(scenario())


def test_what_is_marked_stale_is_asked_for_again_until_the_cluster_has_found_out() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        broker.topics = {"a": topic("a")}
        async with serving(broker), routing(broker, backoff_max_ms=60_000, stale_metadata_retry_ms=1) as router:
            router.watch(["a"])
            await router.refresh([])
            router.mark_stale()
            await broker.until_asked(MetadataRequest, broker.count(MetadataRequest) + 3)
            broker.topics = {"a": topic("a", leaders=(-1,), epoch=1)}
            await next_change(router)
            assert router.leader("a", 0) == -1

    run(scenario())


def test_a_broker_that_has_just_failed_is_asked_last() -> None:
    async def scenario() -> None:
        gone, broker = FakeBroker(), FakeBroker(node_id=1)
        async with serving(broker):
            await gone.start()
            broker.brokers = gone.brokers = [gone, broker]
            # Whoever waits for the pause after the failure waits for a minute.
            async with routing(gone, broker, backoff_first_ms=60_000, backoff_max_ms=60_000) as router:
                await gone.stop()
                with pytest.raises(ConnectFailed):
                    await router.ask(BEAT, node_id=0, purpose=Purpose.GROUP)
                async with asyncio.timeout(10):
                    for _ in range(20):
                        await router.refresh([])

    run(scenario())


def test_the_view_is_refreshed_by_age() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker), routing(broker, metadata_max_age_ms=20) as router:
            broker.topics = {"a": topic("a")}
            router.watch(["a"])
            await next_change(router)
            assert list(router.view.topics) == ["a"]

    run(scenario())


def test_a_refresh_in_the_background_that_fails_is_tried_again() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        refusals = []

        def hang_up(_: MetadataRequest) -> None:
            refusals.append(1)
            if len(refusals) == 4:
                broker.handlers[MetadataRequest] = broker.metadata
            raise HangUp

        async with serving(broker), routing(broker) as router:
            broker.handlers[MetadataRequest] = hang_up
            broker.topics = {"a": topic("a")}
            router.watch(["a"])
            router.mark_stale()
            await next_change(router)
            assert list(router.view.topics) == ["a"]

    run(scenario())


def test_a_view_that_did_not_change_is_no_news() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker), routing(broker) as router:
            news: list[int] = []
            unsubscribe = router.subscribe_to_changes(lambda: news.append(1))
            await router.refresh([])
            assert news == []
            broker.topics = {"a": topic("a")}
            await router.refresh(["a"])
            assert news == [1]
            unsubscribe()
            broker.topics = {}
            await router.refresh(["a"])
            assert news == [1]

    run(scenario())


# Topics


def test_a_topic_is_asked_for_once() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        broker.topics = {"a": topic("a", leaders=(0, -1))}
        async with serving(broker), routing(broker) as router:
            assert list((await router.topic("a")).partitions) == [0, 1]
            before = broker.count(MetadataRequest)
            await router.topic("a")
            assert broker.count(MetadataRequest) == before
            assert (router.leader("a", 0), router.leader("a", 1)) == (0, -1)

    run(scenario())


def test_a_topic_that_does_not_exist_is_said_to_and_not_created() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker), routing(broker) as router:
            with pytest.raises(UnknownTopic, match="topic 'a': UNKNOWN_TOPIC_OR_PARTITION") as unknown:
                await router.topic("a")
            assert unknown.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert not any(each.allow_auto_topic_creation for each in broker.asked if isinstance(each, MetadataRequest))

    run(scenario())


def test_a_topic_may_be_created_by_asking_for_it() -> None:
    async def scenario() -> None:
        broker = FakeBroker()

        def create(request: MetadataRequest) -> MetadataResponse:
            answer = broker.metadata(request)
            if request.allow_auto_topic_creation:
                broker.topics.update({each.name or "": topic(each.name or "") for each in request.topics or ()})
            return answer

        async with serving(broker), routing(broker) as router:
            broker.handlers[MetadataRequest] = create
            assert (await router.topic("a", allow_auto_create=True)).name == "a"

    run(scenario())


def test_a_topic_without_a_leader_is_waited_for() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        broker.topics = {"a": topic("a", leaders=(-1,))}

        def elect(request: MetadataRequest) -> MetadataResponse:
            answer = broker.metadata(request)
            broker.topics = {"a": topic("a", leaders=(0,))}
            return answer

        async with serving(broker), routing(broker) as router:
            broker.handlers[MetadataRequest] = elect
            assert (await router.topic("a")).has_leader

    run(scenario())


def test_a_topic_that_never_gets_a_leader_is_given_up() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        broker.topics = {"a": topic("a", leaders=(-1,))}
        async with serving(broker), routing(broker) as router:
            with pytest.raises(BrokerError, match="LEADER_NOT_AVAILABLE") as leaderless:
                await router.topic("a")
            assert leaderless.value.is_retriable

    run(scenario())


def test_a_topic_that_is_not_for_this_user_fails_at_once() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        broker.topics = {"a": topic("a", error_code=29, leaders=())}
        async with serving(broker), routing(broker) as router:
            before = broker.count(MetadataRequest)
            with pytest.raises(AuthorizationFailed, match="give this user access to the topic"):
                await router.topic("a")
            assert broker.count(MetadataRequest) == before + 1

    run(scenario())


# Connections


def test_each_purpose_and_owner_has_a_connection_of_its_own() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker), routing(broker) as router:
            again = [await router.connection(0, purpose) for purpose in Purpose for _ in range(2)]
            assert len(set(again)) == len(Purpose)
            assert await router.connection(0, Purpose.FETCH, owner="me") not in again

    run(scenario())


def test_those_who_need_a_connection_at_the_same_time_share_it() -> None:
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


def test_a_broker_that_is_not_known_is_said_to_be_so() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker), routing(broker) as router:
            with pytest.raises(ConnectFailed, match=r"broker 7 is not one of the cluster's: \[0\]"):
                await router.connection(7, Purpose.ASK)

    run(scenario())


def test_a_broker_that_moved_is_asked_at_its_new_address() -> None:
    async def scenario() -> None:
        old, new = FakeBroker(node_id=0), FakeBroker(node_id=0)
        async with serving(old), serving(new), routing(old) as router:
            before = await router.connection(0, Purpose.PUSH)
            old.brokers = [new]
            await router.refresh([])
            assert (await router.connection(0, Purpose.PUSH)).address.port == new.port
            assert before.is_open  # it was given by the user as well, who may be right

            new.brokers = [old]
            await router.refresh([])
            moved = await router.connection(0, Purpose.PUSH)
            assert moved.address.port == old.port

    run(scenario())


# Asking


def test_any_broker_will_do_if_none_is_named_and_one_that_fails_is_passed_over() -> None:
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


def test_when_all_known_brokers_are_gone_those_given_are_asked_again() -> None:
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


def test_a_broker_that_is_stuck_does_not_keep_the_view_from_being_refreshed() -> None:
    async def scenario() -> None:
        stuck, well = FakeBroker(node_id=0), FakeBroker(node_id=1)
        async with serving(stuck, well), routing(stuck, connect_timeout_ms=50) as router:
            await router.connection(0, Purpose.ASK)
            stuck.handlers[MetadataRequest] = lambda _: None
            well.topics = {"a": topic("a")}
            for _ in range(3):
                await router.refresh(["a"])
            assert list(router.view.topics) == ["a"]
            # Once it has not answered, others come first.
            assert stuck.count(MetadataRequest) <= 2

    run(scenario())


@pytest.mark.parametrize("change", [{"brokers": ()}, {"error_code": ErrorCode.REBOOTSTRAP_REQUIRED}])
def test_a_broker_that_does_not_know_its_cluster_is_not_believed(change: dict[str, Any]) -> None:
    async def scenario() -> None:
        lost, well = FakeBroker(node_id=0), FakeBroker(node_id=1)
        lost.handlers[MetadataRequest] = lambda request: msgspec.structs.replace(lost.metadata(request), **change)
        async with serving(lost, well):
            async with routing(lost, well) as router:
                assert sorted(router.view.brokers) == [0, 1]
            with pytest.raises(ConnectFailed, match="knows nothing of its cluster yet, or no longer"):
                async with routing(lost):
                    pass

    run(scenario())


# Coordinators


def coordinator(node_id: int, port: int = 0, error: int = 0) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=(
            Coordinator(key="g", node_id=node_id, host="127.0.0.1", port=port, error_code=error, error_message=None),
        ),
    )


def test_a_coordinator_is_asked_for_once_until_it_is_forgotten() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        broker.handlers[FindCoordinatorRequest] = lambda _: coordinator(0, broker.port)
        async with serving(broker), routing(broker) as router:
            assert [await router.coordinator("g") for _ in range(3)] == [0, 0, 0]
            assert broker.count(FindCoordinatorRequest) == 1
            router.forget_coordinator("g")
            assert await router.coordinator("g") == 0
            assert broker.count(FindCoordinatorRequest) == 2

    run(scenario())


def test_a_coordinator_that_is_not_known_yet_is_waited_for() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        answers = [coordinator(-1, error=15), coordinator(-1, error=14), coordinator(0)]
        broker.handlers[FindCoordinatorRequest] = lambda _: answers.pop(0)
        async with serving(broker), routing(broker) as router:
            assert await router.coordinator("g") == 0

    run(scenario())


def test_a_coordinator_that_is_refused_fails_at_once() -> None:
    async def scenario() -> None:
        broker = FakeBroker({FindCoordinatorRequest: lambda _: coordinator(-1, error=30)})
        async with serving(broker), routing(broker) as router:
            with pytest.raises(AuthorizationFailed, match="the coordinator of group 'g'"):
                await router.coordinator("g")
            assert broker.count(FindCoordinatorRequest) == 1

    run(scenario())


def test_a_coordinator_is_found_with_an_old_broker_too() -> None:
    async def scenario() -> None:
        broker = FakeBroker(versions={**ALL_VERSIONS, 10: (0, 2)})
        broker.handlers[FindCoordinatorRequest] = lambda _: FindCoordinatorResponse(
            node_id=0, host="127.0.0.1", port=broker.port
        )
        async with serving(broker), routing(broker) as router:
            assert await router.coordinator("g") == 0
            asked = [each for each in broker.asked if isinstance(each, FindCoordinatorRequest)]
            assert asked[0].key == "g"

    run(scenario())


def test_a_coordinator_not_among_the_brokers_known_is_added_to_them() -> None:
    async def scenario() -> None:
        broker, other = FakeBroker(node_id=0), FakeBroker(node_id=5)
        broker.handlers[FindCoordinatorRequest] = lambda _: coordinator(5, other.port)
        async with serving(broker), serving(other), routing(broker) as router:
            assert await router.coordinator("g") == 5
            assert (await router.connection(5, Purpose.GROUP)).address.port == other.port

    run(scenario())


# Closing


def test_closing_ends_whoever_waits() -> None:
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
