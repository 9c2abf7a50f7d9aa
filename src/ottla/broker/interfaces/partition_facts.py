"""Offsets and sizes of partitions on any node, for other protocols.

There is no authorization here: callers have checked what may be shown.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.interfaces.fetched import READ_COMMITTED, READ_UNCOMMITTED
from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.peers.other_nodes import OtherNodes

_EARLIEST: Final = -2
_LATEST: Final = -1
_CONSUMER: Final = -1
_TURN_PARTITIONS: Final = 100

Elsewhere = dict[int, list["Partition"]]
_CodeAndOffset = tuple[int, int]


class Bounds(NamedTuple):
    start: int
    end: int
    """The end for consumers: the high watermark, or with `is_stable` the last stable offset."""


async def bounds(
    broker: Broker, partitions: Iterable[Partition], *, is_stable: bool = False, is_lenient: bool = False
) -> dict[TopicPartition, Bounds]:
    """The bounds of these partitions; partitions without a leader or a local replica count as empty.

    With `is_lenient`, so do partitions whose leader does not know the bounds yet, or whose log cannot be opened: a
    listing must not fail because of one partition.
    """
    here, elsewhere = _share_out(broker, partitions)
    found: dict[TopicPartition, Bounds] = {}
    async for partition in opened(here):
        if partition.is_here and not (is_lenient and partition.is_unopenable):
            if partition.leads and not is_lenient:
                partition.check_settled()
            found[partition.at] = _bounds_of(partition, is_stable=is_stable)
        else:
            found[partition.at] = Bounds(0, 0)
    if elsewhere and broker.replication is not None:
        others, isolation = broker.replication.others, READ_COMMITTED if is_stable else READ_UNCOMMITTED
        starts, ends = await asyncio.gather(
            _offsets(others, elsewhere, _EARLIEST, READ_UNCOMMITTED), _offsets(others, elsewhere, _LATEST, isolation)
        )
        for at, (start_code, start) in starts.items():
            code = start_code or ends[at][0]
            if not (is_lenient and ErrorCode(code).is_retriable):
                raise_refusal(code, f"could not list the offsets of {at} at its leader")
            found[at] = Bounds(0, 0) if code else Bounds(start, max(start, ends[at][1]))
    return found


async def log_end(broker: Broker, partition: Partition) -> int:
    """The log end offset at the leader: the last records may not be committed yet."""
    node = node_to_ask(broker, partition)
    if node == broker.config.node_id or broker.replication is None:
        return partition.log.next_offset
    asked = _offsets_at(broker.replication.others, node, [partition], _LATEST, READ_UNCOMMITTED, broker.config.node_id)
    [(code, end)] = (await asked).values()
    raise_refusal(code, f"could not list the offsets of {partition.at} at its leader")
    return end


def _bounds_of(partition: Partition, *, is_stable: bool) -> Bounds:
    if is_stable:
        return Bounds(partition.log.start_offset, partition.last_stable_offset)
    facts = partition.facts
    return Bounds(facts.start, facts.end)


async def sizes(broker: Broker, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
    """The size in bytes at each leader."""
    here, elsewhere = _share_out(broker, partitions)
    found: dict[TopicPartition, int] = {}
    async for partition in opened(here):
        found[partition.at] = partition.facts.size if partition.is_here and not partition.is_unopenable else 0
    if elsewhere and broker.replication is not None:
        others = broker.replication.others
        for part in await asyncio.gather(*(_sizes_at(others, node, each) for node, each in elsewhere.items())):
            found |= part
    return found


async def opened(partitions: Iterable[Partition]) -> AsyncIterator[Partition]:
    """Iterate over logs. Opening one takes milliseconds, so other requests are served in between."""
    for number, partition in enumerate(list(partitions), 1):
        was_open = partition.is_open
        yield partition
        if was_open != partition.is_open or number % _TURN_PARTITIONS == 0:
            await asyncio.sleep(0)


def _share_out(broker: Broker, partitions: Iterable[Partition]) -> tuple[list[Partition], Elsewhere]:
    here: list[Partition] = []
    elsewhere: Elsewhere = {}
    for partition in partitions:
        node = node_to_ask(broker, partition)
        if node == broker.config.node_id:
            here.append(partition)
        else:
            elsewhere.setdefault(node, []).append(partition)
    return here, elsewhere


def node_to_ask(broker: Broker, partition: Partition) -> int:
    """The partition's leader; this node if it has none, or there is no cluster."""
    leader, _ = partition.leader
    return leader if leader in broker.topology.node_ids else broker.config.node_id


async def _offsets(
    others: OtherNodes, elsewhere: Elsewhere, timestamp: int, isolation: int
) -> dict[TopicPartition, _CodeAndOffset]:
    found: dict[TopicPartition, _CodeAndOffset] = {}
    asked = (_offsets_at(others, node, each, timestamp, isolation) for node, each in elsewhere.items())
    for part in await asyncio.gather(*asked):
        found |= part
    return found


async def _offsets_at(
    others: OtherNodes,
    node: int,
    partitions: list[Partition],
    timestamp: int,
    isolation: int,
    replica_id: int = _CONSUMER,
) -> dict[TopicPartition, _CodeAndOffset]:
    topics = tuple(
        ListOffsetsTopic(
            name=name,
            partitions=tuple(ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in indexes),
        )
        for name, indexes in _by_topic(partitions).items()
    )
    request = ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation, topics=topics)
    answer = await others.ask(node, request)
    return {
        TopicPartition(topic.name, each.partition_index): (each.error_code, each.offset)
        for topic in answer.topics
        for each in topic.partitions
    }


async def _sizes_at(others: OtherNodes, node: int, partitions: list[Partition]) -> dict[TopicPartition, int]:
    topics = tuple(
        DescribableLogDirTopic(topic=name, partitions=tuple(indexes)) for name, indexes in _by_topic(partitions).items()
    )
    answer = await others.ask(node, DescribeLogDirsRequest(topics=topics))
    raise_refusal(answer.error_code, f"could not describe the log directories of node {node}")
    found = dict.fromkeys((partition.at for partition in partitions), 0)
    for result in answer.results:
        for topic in result.topics:
            for each in topic.partitions:
                found[TopicPartition(topic.name, each.partition_index)] = each.partition_size
    return found


def _by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for partition in partitions:
        found.setdefault(partition.at.topic, []).append(partition.at.partition)
    return found
