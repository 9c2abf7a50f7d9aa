"""The router finds coordinators."""

from __future__ import annotations

import pytest

from ottla.client.errors import (
    AuthorizationFailed,
)
from ottla.client.router import Purpose
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

from .fake_broker import ALL_VERSIONS, FakeBroker, serving
from .routing import routing
from .running import run


def coordinator(node_id: int, port: int = 0, error: int = 0) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=(
            Coordinator(key="g", node_id=node_id, host="127.0.0.1", port=port, error_code=error, error_message=None),
        ),
    )


def test_a_coordinator_is_looked_up_once_until_invalidated() -> None:
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


def test_an_unavailable_coordinator_is_waited_for() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        answers = [coordinator(-1, error=15), coordinator(-1, error=14), coordinator(0)]
        broker.handlers[FindCoordinatorRequest] = lambda _: answers.pop(0)
        async with serving(broker), routing(broker) as router:
            assert await router.coordinator("g") == 0

    run(scenario())


def test_a_refused_coordinator_lookup_fails_at_once() -> None:
    async def scenario() -> None:
        broker = FakeBroker({FindCoordinatorRequest: lambda _: coordinator(-1, error=30)})
        async with serving(broker), routing(broker) as router:
            with pytest.raises(AuthorizationFailed, match="no coordinator for group 'g'"):
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


def test_an_unknown_coordinator_is_added_to_the_known_brokers() -> None:
    async def scenario() -> None:
        broker, other = FakeBroker(node_id=0), FakeBroker(node_id=5)
        broker.handlers[FindCoordinatorRequest] = lambda _: coordinator(5, other.port)
        async with serving(broker), serving(other), routing(broker) as router:
            assert await router.coordinator("g") == 5
            assert (await router.connection(5, Purpose.GROUP)).address.port == other.port

    run(scenario())
