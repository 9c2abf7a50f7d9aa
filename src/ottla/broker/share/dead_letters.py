"""Dead letters: records that a share group rejected, copied to a topic before they are archived."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.batches.letters import PREFIX, Letters
from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.broker.interfaces.partition_facts import node_to_ask
from ottla.broker.share.writing import all_safe, append_batch
from ottla.core.errors import OffsetOutOfRange
from ottla.records.batch import read_header
from ottla.records.reader import RecordReader
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.replication.replication import Replication
    from ottla.broker.share.shared import Shared
    from ottla.records.reader import Record
    from ottla.share.partition import Change

_logger: Final = logging.getLogger(__name__)

_READ_BYTES: Final = 1 << 20
_ALL: Final = -1
_PRODUCE_MS: Final = 10_000
_PRODUCE_BY_NAME: Final = 12


async def write_letters(broker: Broker, shared: Shared, topic: str, dying: Sequence[Change]) -> None:
    """Wait until the dead letters are durable. Raises ApiError if they cannot be written."""
    if topic == shared.partition.at.topic:
        _logger.warning("%s: rejected records of a dead-letter topic are not dead letters again", shared.partition.at)
        return
    state = broker.topics.by_name.get(topic) or broker.create_topic(topic)
    target = state.partitions[shared.partition.at.partition % len(state.partitions)]
    letters = Letters(state.config.log.max_message_bytes)
    for change in dying:
        async for record in _records(broker, shared.partition, change):
            letters.add(record, _headers(shared, record.offset, change))
    batches = letters.built()
    if broker.replication is None or node_to_ask(broker, target) == broker.replication.node_id:
        await all_safe([append_batch(target, batch) for batch in batches])
        return
    for batch in batches:
        await _produce_at(broker.replication, node_to_ask(broker, target), target, batch)


async def _produce_at(replication: Replication, leader: int, target: Partition, batch: bytearray) -> None:
    data = PartitionProduceData(index=target.at.partition, records=memoryview(batch))
    request = ProduceRequest(
        acks=_ALL,
        timeout_ms=_PRODUCE_MS,
        topic_data=(TopicProduceData(name=target.at.topic, partition_data=(data,)),),
    )
    answer = await replication.others.ask(leader, request, _PRODUCE_BY_NAME)
    [result] = answer.responses[0].partition_responses
    raise_refusal(result.error_code, result.error_message)


async def _records(broker: Broker, partition: Partition, change: Change) -> AsyncIterator[Record]:
    allowance = broker.inflating.allowance()
    offset = change.first
    while offset <= change.last:
        try:
            data = partition.log.read(offset, _READ_BYTES)
        except OffsetOutOfRange:
            # Retention has already deleted the record.
            return
        if not data:
            return
        at = 0
        while at < len(data) and offset <= change.last:
            header = read_header(data, at)
            batch = await broker.inflating.uncompressed(data[at : at + header.size], header, allowance)
            at += header.size
            for record in RecordReader(batch, offset):
                if record.offset > change.last:
                    return
                yield record
            offset = header.next_offset


def _headers(shared: Shared, offset: int, change: Change) -> tuple[tuple[str, bytes], ...]:
    at = shared.partition.at
    why = {
        "group": shared.key.group_id,
        "topic": at.topic,
        "partition": str(at.partition),
        "offset": str(offset),
        "delivery-count": str(change.deliveries),
        "reason": "rejected" if change.was_rejected else "delivery-count-limit",
    }
    return tuple((PREFIX + name, text.encode()) for name, text in why.items())
