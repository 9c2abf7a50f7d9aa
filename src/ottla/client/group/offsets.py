"""Committed offsets at the coordinator: commit and fetch, with retries."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.client.connections import Purpose
from ottla.client.errors import BrokerError, BrokerUnavailable, broker_error, error_code
from ottla.client.group.interface import Committed
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.apis import OFFSET_COMMIT, OFFSET_FETCH
from ottla.wire.consumer_protocol import TopicPartitions, by_topic
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
    from typing import TypeVar

    from ottla.client.router import Router

    T = TypeVar("T")

_LAST_BY_NAME: Final = 9
"""From version 10 on both requests name topics by their ids."""
_MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class Identity(NamedTuple):
    """The committer: a member in a generation, or none."""

    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


NOBODY: Final = Identity()


class GroupOffsets:
    def __init__(self, router: Router, group: str) -> None:
        self.timeout_s = router.config.request_timeout_ms / 1000
        self._router = router
        self._group = group
        # One commit at a time: an older retry must not overwrite a newer commit.
        self._committing = asyncio.Lock()

    async def commit(
        self, offsets: Mapping[TopicPartition, Committed], identity: Callable[[], Identity] = lambda: NOBODY
    ) -> None:
        """Commit offsets. `identity` is called before each attempt; if it raises, the commit ends."""
        if not offsets:
            return
        async with self._committing:
            await self._patiently(lambda: self._commit_once(offsets, identity()))

    async def fetch(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Committed]:
        """Fetch committed offsets; partitions without one are omitted."""
        if not partitions:
            return {}
        return await self._patiently(lambda: self._fetch_once(partitions))

    async def _patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.timeout_s
        failures = 0
        while True:
            try:
                return await attempt()
            except BrokerUnavailable as failed:
                self._router.forget_coordinator(self._group)
                last: BrokerUnavailable | BrokerError = failed
            except BrokerError as refused:
                if refused.code in _MOVED:
                    self._router.forget_coordinator(self._group)
                elif not refused.is_retriable and refused.code is not ErrorCode.REBALANCE_IN_PROGRESS:
                    raise
                last = refused
            failures += 1
            pause_s = self._router.backoff.delay_s(failures)
            if loop.time() + pause_s > deadline:
                raise last
            await asyncio.sleep(pause_s)

    async def _commit_once(self, offsets: Mapping[TopicPartition, Committed], identity: Identity) -> None:
        node_id = await self._router.coordinator(self._group)
        connection = await self._router.connection(node_id, Purpose.GROUP)
        version = connection.version_of(OFFSET_COMMIT, max_version=_LAST_BY_NAME)
        response = await connection.ask(_commit_request(self._group, offsets, identity), version=version)
        for topic in response.topics:
            for each in topic.partitions:
                if each.error_code != ErrorCode.NONE:
                    at = TopicPartition(topic.name, each.partition_index)
                    raise broker_error(each.error_code, f"commit of {at} for group {self._group!r}")

    async def _fetch_once(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Committed]:
        node_id = await self._router.coordinator(self._group)
        connection = await self._router.connection(node_id, Purpose.GROUP)
        version = connection.version_of(OFFSET_FETCH, max_version=_LAST_BY_NAME)
        response = await connection.ask(_fetch_request(self._group, by_topic(partitions)), version=version)
        found = {}
        for at, each in _answered(self._group, response):
            if each.error_code != ErrorCode.NONE:
                raise broker_error(each.error_code, f"committed offset of {at} for group {self._group!r}")
            if each.committed_offset >= 0:
                found[at] = Committed(each.committed_offset, each.committed_leader_epoch, each.metadata or "")
        return found


def _commit_request(group: str, offsets: Mapping[TopicPartition, Committed], identity: Identity) -> OffsetCommitRequest:
    def partition(topic: str, index: int) -> OffsetCommitRequestPartition:
        committed = offsets[TopicPartition(topic, index)]
        return OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            committed_metadata=committed.metadata,
        )

    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=each.topic, partitions=tuple(partition(each.topic, index) for index in each.partitions)
            )
            for each in by_topic(offsets)
        ),
    )


def _fetch_request(group: str, topics: tuple[TopicPartitions, ...]) -> OffsetFetchRequest:
    """Both forms of the request: each version uses its own fields."""
    one = tuple(OffsetFetchRequestTopic(name=each.topic, partition_indexes=each.partitions) for each in topics)
    many = tuple(OffsetFetchRequestTopics(name=each.topic, partition_indexes=each.partitions) for each in topics)
    # Wait for pending transactional offsets: the transaction may be this group's own (KIP-447).
    return OffsetFetchRequest(
        group_id=group,
        topics=one,
        groups=(OffsetFetchRequestGroup(group_id=group, topics=many),),
        require_stable=True,
    )


def _answered(
    group: str, response: OffsetFetchResponse
) -> Iterator[tuple[TopicPartition, OffsetFetchResponsePartition | OffsetFetchResponsePartitions]]:
    for code in (response.error_code, *(each.error_code for each in response.groups)):
        if error_code(code) is not ErrorCode.NONE:
            raise broker_error(code, f"committed offsets of group {group!r}")
    for topic in response.topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition.partition_index), partition
    for answer in response.groups:
        for named in answer.topics:
            for one in named.partitions:
                yield TopicPartition(named.name, one.partition_index), one
