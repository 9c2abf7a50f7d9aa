"""Offset commit and fetch in every version, and with a coordinator that moves or never answers."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.client.fake_broker import ALL_VERSIONS, FakeBroker, HangUp
from tests.client.running import run

from ottla.client.addresses import parse_addresses
from ottla.client.config import ClientConfig
from ottla.client.errors import AuthorizationFailed, BrokerError, BrokerUnavailable
from ottla.client.group.interface import Committed
from ottla.client.group.offsets import GroupOffsets, Identity
from ottla.client.router import Router
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.apis import OFFSET_COMMIT, OFFSET_FETCH
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class GroupBroker(FakeBroker):
    """A coordinator that stores commits, after answering with the errors in `refusals`."""

    def __init__(self, commit_version: int = OFFSET_COMMIT.last, fetch_version: int = OFFSET_FETCH.last) -> None:
        versions = {OFFSET_COMMIT.key: (2, commit_version), OFFSET_FETCH.key: (1, fetch_version)}
        super().__init__(versions=ALL_VERSIONS | versions)
        self.handlers[FindCoordinatorRequest] = self._coordinator
        self.handlers[OffsetCommitRequest] = self._commit
        self.handlers[OffsetFetchRequest] = self._fetch
        self.refusals: list[ErrorCode | None] = []
        self.offsets: dict[int, int] = {}
        self.commits: list[OffsetCommitRequest] = []

    def _coordinator(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        place = {"node_id": 0, "host": self.host, "port": self.port, "error_code": 0, "error_message": None}
        found = Coordinator(key="g", **place)  # type: ignore[arg-type]
        assert "g" in (request.key, *request.coordinator_keys)
        return FindCoordinatorResponse(coordinators=(found,))

    def _next_refusal(self) -> ErrorCode:
        refusal = self.refusals.pop(0) if self.refusals else ErrorCode.NONE
        if refusal is None:
            raise HangUp
        return refusal

    def _commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        code = self._next_refusal()
        self.commits.append(request)
        [topic] = request.topics
        if code is ErrorCode.NONE:
            self.offsets.update({one.partition_index: one.committed_offset for one in topic.partitions})
        answers = tuple(
            OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
            for one in topic.partitions
        )
        return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name=topic.name, partitions=answers),))

    def _fetch(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        code = self._next_refusal()
        if not request.groups:
            [asked] = request.topics or ()
            old = tuple(OffsetFetchResponsePartition(**self._found(index, code)) for index in asked.partition_indexes)
            return OffsetFetchResponse(topics=(OffsetFetchResponseTopic(name=asked.name, partitions=old),))
        [[named]] = [group.topics or () for group in request.groups]
        new = tuple(OffsetFetchResponsePartitions(**self._found(index, code)) for index in named.partition_indexes)
        topics = (OffsetFetchResponseTopics(name=named.name, partitions=new),)
        return OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="g", topics=topics),))

    def _found(self, index: int, code: ErrorCode) -> dict[str, object]:
        offset = self.offsets.get(index, -1)
        return {"partition_index": index, "committed_offset": offset, "metadata": "note", "error_code": code}


@asynccontextmanager
async def offsets_at(broker: GroupBroker, request_timeout_ms: int = 5000) -> AsyncIterator[GroupOffsets]:
    await broker.start()
    config = ClientConfig(backoff_first_ms=1, backoff_max_ms=5, request_timeout_ms=request_timeout_ms)
    router = Router(parse_addresses(broker.address), config)
    try:
        await router.start()
        yield GroupOffsets(router, "g")
    finally:
        await router.close()
        await broker.stop()


@pytest.mark.parametrize("version", range(OFFSET_COMMIT.first, OFFSET_COMMIT.last + 1))
def test_a_commit_works_in_every_version_that_names_topics(version: int) -> None:
    async def scenario() -> None:
        broker = GroupBroker(commit_version=version)
        async with offsets_at(broker) as offsets:
            await offsets.commit(
                {P0: Committed(7, metadata="m"), P1: Committed(8)}, lambda: Identity(3, "me", "static")
            )
        assert broker.offsets == {0: 7, 1: 8}
        [request] = broker.commits
        assert (request.generation_id_or_member_epoch, request.member_id) == (3, "me")
        assert ("OffsetCommit", min(version, 9)) in broker.asked_versions

    run(scenario())


@pytest.mark.parametrize("version", range(OFFSET_FETCH.first, OFFSET_FETCH.last + 1))
def test_committed_offsets_are_read_in_every_version_that_names_topics(version: int) -> None:
    async def scenario() -> None:
        broker = GroupBroker(fetch_version=version)
        broker.offsets = {0: 7}
        async with offsets_at(broker) as offsets:
            assert await offsets.fetch([P0, P1]) == {P0: Committed(7, metadata="note")}
            assert await offsets.fetch([]) == {}

    run(scenario())


@pytest.mark.parametrize(
    "refusal",
    [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REBALANCE_IN_PROGRESS, None],
)
def test_a_transient_error_is_retried(refusal: ErrorCode | None) -> None:
    async def scenario() -> None:
        broker = GroupBroker()
        async with offsets_at(broker) as offsets:
            broker.refusals = [refusal, refusal]
            await offsets.commit({P0: Committed(7)})
            broker.refusals = [refusal]
            assert await offsets.fetch([P0]) == {P0: Committed(7, metadata="note")}
            looked = broker.count(FindCoordinatorRequest)
        assert looked == (1 if refusal is ErrorCode.REBALANCE_IN_PROGRESS else 4)

    run(scenario())


def test_a_persistent_retriable_error_is_raised_at_the_timeout() -> None:
    async def scenario() -> None:
        broker = GroupBroker()
        async with offsets_at(broker, request_timeout_ms=50) as offsets:
            broker.refusals = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 1000
            with pytest.raises(BrokerError, match=r"commit of t-0 for group 'g': COORDINATOR_LOAD_IN_PROGRESS"):
                await offsets.commit({P0: Committed(7)})
            broker.refusals = [None] * 1000
            with pytest.raises(BrokerUnavailable):
                await offsets.fetch([P0])

    run(scenario())


def test_a_fatal_error_is_raised_at_once() -> None:
    async def scenario() -> None:
        broker = GroupBroker()
        async with offsets_at(broker) as offsets:
            broker.refusals = [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
            with pytest.raises(AuthorizationFailed):
                await offsets.commit({P0: Committed(7)})
            with pytest.raises(AuthorizationFailed):
                await offsets.fetch([P0])
        assert len(broker.commits) == 1

    run(scenario())


def test_the_committer_is_looked_up_before_each_attempt() -> None:
    async def scenario() -> None:
        broker = GroupBroker()
        generations = iter([1, 2])
        async with offsets_at(broker) as offsets:
            broker.refusals = [ErrorCode.REBALANCE_IN_PROGRESS]
            await offsets.commit({P0: Committed(7)}, lambda: Identity(next(generations), "me"))
        assert [request.generation_id_or_member_epoch for request in broker.commits] == [1, 2]

    run(scenario())
