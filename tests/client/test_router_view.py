"""The router's cluster view: bootstrap, refresh, topics."""

from __future__ import annotations

import asyncio

import pytest

from ottla.client.addresses import parse_addresses
from ottla.client.config import ClientConfig
from ottla.client.errors import (
    AuthorizationFailed,
    BrokerError,
    ConnectFailed,
    UnknownTopic,
)
from ottla.client.router import Purpose, Router
from ottla.core.errors import ErrorCode
from ottla.core.ids import Address
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse

from .fake_broker import FakeBroker, HangUp, serving, topic
from .routing import BEAT, QUICK, next_change, routing
from .running import run

# Finding the cluster


def test_one_reachable_bootstrap_server_is_enough() -> None:
    async def scenario() -> None:
        broker, gone = FakeBroker(), FakeBroker()
        await gone.start()
        await gone.stop()
        async with serving(broker), routing(gone, broker) as router:
            assert router.view.cluster_id == "fake"
            assert list(router.view.brokers) == [0]

    run(scenario())


def test_if_no_bootstrap_server_is_reachable_the_error_names_each() -> None:
    async def scenario() -> None:
        router = Router(parse_addresses("127.0.0.1:1,127.0.0.1:2"), ClientConfig(**QUICK))
        with pytest.raises(ConnectFailed, match=r"127\.0\.0\.1:1: .*127\.0\.0\.1:2: "):
            await router.start()
        await router.close()

    run(scenario())


def test_a_cluster_that_starts_late_is_waited_for() -> None:
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


def test_a_broker_known_by_two_names_has_one_connection() -> None:
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


def test_concurrent_metadata_requests_are_merged() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        broker.topics = {name: topic(name) for name in "abc"}
        async with serving(broker), routing(broker) as router:
            before = broker.count(MetadataRequest)
            await asyncio.gather(*(router.refresh([name]) for name in "abcabc"))
            assert sorted(router.view.topics) == ["a", "b", "c"]
            assert broker.count(MetadataRequest) == before + 1

    run(scenario())


def test_requests_made_during_a_refresh_share_the_next_one() -> None:
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


def test_cancelling_one_waiter_does_not_affect_the_others() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker), routing(broker) as router:
            impatient, patient = (asyncio.create_task(router.refresh([])) for _ in range(2))
            await asyncio.sleep(0)
            impatient.cancel()
            await patient
            assert impatient.cancelled()

    run(scenario())


def test_all_topics_are_requested_unless_some_are_named() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        broker.topics = {name: topic(name) for name in "ab"}
        async with serving(broker), routing(broker) as router:
            await router.refresh(["a"])
            assert list(router.view.topics) == ["a"]
            await router.refresh()
            assert sorted(router.view.topics) == ["a", "b"]

    run(scenario())


def test_a_stale_view_is_refreshed_soon_with_all_watched_topics() -> None:
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


def test_a_stale_view_is_refreshed_until_the_cluster_has_changed() -> None:
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


def test_a_recently_failed_broker_is_tried_last() -> None:
    async def scenario() -> None:
        gone, broker = FakeBroker(), FakeBroker(node_id=1)
        async with serving(broker):
            await gone.start()
            broker.brokers = gone.brokers = [gone, broker]
            # The backoff after the failure takes a minute.
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


def test_a_failed_background_refresh_is_retried() -> None:
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


def test_an_unchanged_view_notifies_no_watchers() -> None:
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


def test_a_topic_is_requested_once() -> None:
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


def test_an_unknown_topic_is_an_error_and_not_created() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker), routing(broker) as router:
            with pytest.raises(UnknownTopic, match="topic 'a': UNKNOWN_TOPIC_OR_PARTITION") as unknown:
                await router.topic("a")
            assert unknown.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert not any(each.allow_auto_topic_creation for each in broker.asked if isinstance(each, MetadataRequest))

    run(scenario())


def test_a_topic_may_be_created_by_a_metadata_request() -> None:
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


def test_a_topic_without_a_leader_is_an_error_at_the_timeout() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        broker.topics = {"a": topic("a", leaders=(-1,))}
        async with serving(broker), routing(broker) as router:
            with pytest.raises(BrokerError, match="LEADER_NOT_AVAILABLE") as leaderless:
                await router.topic("a")
            assert leaderless.value.is_retriable

    run(scenario())


def test_an_unauthorized_topic_fails_at_once() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        broker.topics = {"a": topic("a", error_code=29, leaders=())}
        async with serving(broker), routing(broker) as router:
            before = broker.count(MetadataRequest)
            with pytest.raises(AuthorizationFailed, match="grant the user access to the topic"):
                await router.topic("a")
            assert broker.count(MetadataRequest) == before + 1

    run(scenario())
