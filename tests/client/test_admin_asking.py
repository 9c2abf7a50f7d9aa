"""Routing of admin requests, also when the controller, a leader or a coordinator moves."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from ottla.client import Client
from ottla.client.admin.offsets import FoundOffset
from ottla.client.errors import BrokerError, BrokerUnavailable
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.metadata import MetadataRequest

from .fake_broker import FakeBroker, HangUp, serving, topic
from .running import run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ottla.client.admin.admin import Admin

WHERE = TopicPartition("a", 0)


@asynccontextmanager
async def administering(*brokers: FakeBroker, **options: Any) -> AsyncIterator[Admin]:
    quick = {"backoff_first_ms": 1, "backoff_max_ms": 5, "metadata_refresh_retry_ms": 1, **options}
    async with serving(*brokers), Client(brokers[0].address, **quick) as client:
        yield client.admin


def created(error: ErrorCode) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=(CreatableTopicResult(name="a", error_code=error, error_message=None),))


def listed(error: ErrorCode, offset: int = -1) -> ListOffsetsResponse:
    found = ListOffsetsPartitionResponse(partition_index=0, error_code=error, offset=offset)
    return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="a", partitions=(found,)),))


def leads(node_id: int, *brokers: FakeBroker) -> None:
    for broker in brokers:
        broker.topics = {"a": topic("a", leaders=(node_id,))}


# The controller


def test_controller_requests_follow_the_controller() -> None:
    async def scenario() -> None:
        first, second = FakeBroker(node_id=0), FakeBroker(node_id=1)

        def move(_: CreateTopicsRequest) -> CreateTopicsResponse:
            for broker in (first, second):
                broker.brokers = [second, first]  # the first of these is the controller
            return created(ErrorCode.NOT_CONTROLLER)

        first.handlers[CreateTopicsRequest] = move
        second.handlers[CreateTopicsRequest] = lambda _: created(ErrorCode.NONE)
        async with administering(first, second) as admin:
            await admin.create_topic("a")
        assert (first.count(CreateTopicsRequest), second.count(CreateTopicsRequest)) == (1, 1)

    run(scenario())


def test_a_missing_controller_is_an_error_at_the_timeout() -> None:
    async def scenario() -> None:
        broker = FakeBroker({CreateTopicsRequest: lambda _: created(ErrorCode.NOT_CONTROLLER)})
        async with administering(broker, request_timeout_ms=50) as admin:
            with pytest.raises(BrokerError, match="NOT_CONTROLLER"):
                await admin.create_topic("a")

    run(scenario())


# Leaders


def test_a_partition_is_requested_once_if_its_leader_answers() -> None:
    async def scenario() -> None:
        broker = FakeBroker({ListOffsetsRequest: lambda _: listed(ErrorCode.NONE, 5)})
        leads(0, broker)
        async with administering(broker) as admin:
            assert await admin.latest_offsets([WHERE]) == {WHERE: FoundOffset(5, -1, -1)}
            metadata = broker.count(MetadataRequest)
            await admin.latest_offsets([WHERE])
            assert broker.count(ListOffsetsRequest) == 2
            assert broker.count(MetadataRequest) == metadata

    run(scenario())


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_partition_whose_leader_moved_or_died_is_requested_from_the_new_leader(is_gone: bool) -> None:  # noqa: FBT001
    async def scenario() -> None:
        first, second = FakeBroker(node_id=0), FakeBroker(node_id=1)

        def move(_: ListOffsetsRequest) -> ListOffsetsResponse:
            leads(1, first, second)
            if is_gone:
                raise HangUp
            return listed(ErrorCode.NOT_LEADER_OR_FOLLOWER)

        first.handlers[ListOffsetsRequest] = move
        second.handlers[ListOffsetsRequest] = lambda _: listed(ErrorCode.NONE, 7)
        leads(0, first, second)
        async with administering(first, second) as admin:
            assert await admin.latest_offsets([WHERE]) == {WHERE: FoundOffset(7, -1, -1)}

    run(scenario())


def test_a_fatal_error_is_reported_for_its_partition() -> None:
    async def scenario() -> None:
        broker = FakeBroker({ListOffsetsRequest: lambda _: listed(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)})
        leads(0, broker)
        async with administering(broker) as admin:
            [error] = (await admin.latest_offsets([WHERE])).values()
            assert isinstance(error, BrokerError)
            assert error.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
            assert broker.count(ListOffsetsRequest) == 1

    run(scenario())


def test_no_request_is_sent_without_partitions() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with administering(broker) as admin:
            assert await admin.latest_offsets([]) == {}

    run(scenario())


# Coordinators


def test_a_coordinator_that_moved_or_died_is_found_again() -> None:
    async def scenario() -> None:
        first, second = FakeBroker(node_id=0), FakeBroker(node_id=1)
        troubles: list[Exception | ErrorCode] = [HangUp(), ErrorCode.NOT_COORDINATOR, ErrorCode.NONE]

        def find(_: FindCoordinatorRequest) -> FindCoordinatorResponse:
            at = first if len(troubles) == 3 else second
            found = Coordinator(
                key="g", node_id=at.node_id, host=at.host, port=at.port, error_code=0, error_message=None
            )
            return FindCoordinatorResponse(coordinators=(found,))

        def delete(_: DeleteGroupsRequest) -> DeleteGroupsResponse:
            trouble = troubles.pop(0)
            if isinstance(trouble, Exception):
                raise trouble
            return DeleteGroupsResponse(results=(DeletableGroupResult(group_id="g", error_code=trouble),))

        for broker in (first, second):
            broker.handlers |= {FindCoordinatorRequest: find, DeleteGroupsRequest: delete}
        async with administering(first, second) as admin:
            await admin.delete_group("g")
        assert (first.count(DeleteGroupsRequest), second.count(DeleteGroupsRequest)) == (1, 2)

    run(scenario())


def test_a_lost_broker_is_an_error_at_the_timeout() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with administering(broker, request_timeout_ms=50, metadata_refresh_retry_count=1) as admin:
            await broker.stop()
            with pytest.raises(BrokerUnavailable):
                await admin.delete_group("g")
            await broker.start()

    run(scenario())
