"""ListOffsets: the earliest, the latest, or the first offset at or after a timestamp, from the leaders."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.client.errors import BrokerUnavailable, ClientError, broker_error
from ottla.client.view import NO_LEADER
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.router import Router
    from ottla.wire.messages.list_offsets import ListOffsetsResponse

LATEST: Final = -1
EARLIEST: Final = -2
_CONSUMER: Final = -1
"""The replica id of consumers."""


@dataclass(frozen=True, slots=True)
class OffsetAtTime:
    offset: int
    timestamp: int
    """The timestamp of the record at this offset; -1 for the special times."""


Found = dict[TopicPartition, OffsetAtTime | ClientError]


async def list_offsets(router: Router, wanted: Mapping[TopicPartition, int], isolation: int) -> Found:
    """One request per leader; an error for each partition without a leader, or that the leader rejects."""
    found: Found = {}
    by_leader: dict[int, dict[TopicPartition, int]] = {}
    for at, timestamp in wanted.items():
        leader = router.leader(at.topic, at.partition)
        if leader == NO_LEADER:
            found[at] = broker_error(ErrorCode.LEADER_NOT_AVAILABLE, str(at))
        else:
            by_leader.setdefault(leader, {})[at] = timestamp
    for answers in await asyncio.gather(*(_ask(router, node, each, isolation) for node, each in by_leader.items())):
        found |= answers
    return found


async def offsets_at(router: Router, wanted: Mapping[TopicPartition, int], isolation: int) -> dict[TopicPartition, int]:
    """Like `list_offsets`, with retries; after the request timeout, raises the last error.

    The offset is -1 if no record is as new as the timestamp.
    """
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + router.config.request_timeout_ms / 1000
    offsets: dict[TopicPartition, int] = {}
    missing = dict(wanted)
    failures = 0
    for topic in sorted({at.topic for at in wanted}):
        await router.topic(topic)
    while missing:
        for at, answer in (await list_offsets(router, missing, isolation)).items():
            if isinstance(answer, OffsetAtTime):
                offsets[at] = answer.offset
                del missing[at]
            elif not answer.is_retriable or loop.time() >= give_up_at:
                raise answer
        if missing:
            failures += 1
            router.mark_stale()
            await asyncio.sleep(router.backoff.delay_s(failures))
    return offsets


async def _ask(router: Router, node_id: int, wanted: Mapping[TopicPartition, int], isolation: int) -> Found:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for at, timestamp in wanted.items():
        topics.setdefault(at.topic, []).append(ListOffsetsPartition(partition_index=at.partition, timestamp=timestamp))
    request = ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=isolation,
        topics=tuple(ListOffsetsTopic(name=name, partitions=tuple(each)) for name, each in topics.items()),
        timeout_ms=router.config.request_timeout_ms,
    )
    try:
        response = await router.ask(request, node_id=node_id)
    except BrokerUnavailable as failed:
        return dict.fromkeys(wanted, failed)
    missing: Found = {at: broker_error(ErrorCode.UNKNOWN_SERVER_ERROR, f"no response for {at}") for at in wanted}
    return missing | _read(response)


def _read(response: ListOffsetsResponse) -> Found:
    found: Found = {}
    for topic in response.topics:
        for answer in topic.partitions:
            at = TopicPartition(topic.name, answer.partition_index)
            if answer.error_code:
                found[at] = broker_error(answer.error_code, f"offsets of {at}")
            else:
                found[at] = OffsetAtTime(answer.offset, answer.timestamp)
    return found
