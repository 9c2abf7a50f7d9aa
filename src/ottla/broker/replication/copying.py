"""How a follower processes its leader's fetch response, for one partition."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.client.errors import raise_for
from ottla.cluster.replication.following import Restart, Truncate, truncation_point, when_out_of_range
from ottla.records.batch import HEADER_BYTES, read_header
from ottla.storage.files import storage_errors
from ottla.storage.truncation import restart_at, truncate_to
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from ottla.broker.replication.replica import Replica
    from ottla.client.connection import Connection
    from ottla.wire.messages.fetch import EpochEndOffset, PartitionData

_logger: Final = logging.getLogger(__name__)

_LATEST: Final = -1
_EARLIEST: Final = -2


def take_over(replica: Replica, data: PartitionData) -> None:
    """Append the batches, and update log start offset and high watermark from the leader."""
    log = replica.log
    if log.next_offset < data.tombstones_removed_until:
        # The copy lacks them as well.
        with storage_errors(log.folder.name):
            log.removed_tombstones.raise_to(data.tombstones_removed_until)
    records = memoryview(data.records or b"")
    at = 0
    while at + HEADER_BYTES <= len(records):
        header = read_header(records, at)
        end = at + header.size
        if end > len(records):
            break  # the last batch may be incomplete
        if header.next_offset > log.next_offset:
            if header.base_offset < log.next_offset == log.start_offset:
                # The leader's log starts within this batch. Records before its start are hidden here as well.
                restart_at(log, header.base_offset)
            log.append_as_follower(records[at:end])
        at = end
    start = min(data.log_start_offset, log.next_offset)
    if start > log.start_offset:
        log.raise_start(start)
    replica.follow_to(data.high_watermark)


def truncate_diverging(replica: Replica, diverging: EpochEndOffset) -> None:
    """Truncate records that the leader does not have: they were never committed."""
    log = replica.log
    _truncate(replica, truncation_point(log.epochs, log.next_offset, diverging.epoch, diverging.end_offset))


async def find_back(replica: Replica, connection: Connection, node_id: int) -> None:
    """Reconcile a log whose end is out of the leader's range: get that range, then truncate or restart the log."""
    epoch, log = replica.leader_epoch, replica.log
    start = await _offset_of(_EARLIEST, replica, connection, node_id)
    end = await _offset_of(_LATEST, replica, connection, node_id)
    if replica.leading is not None or replica.leader_epoch != epoch:
        return
    match when_out_of_range(log.next_offset, start, end):
        case Truncate(offset):
            _truncate(replica, offset)
        case Restart(offset):
            _logger.warning("%s: discarding %r and restarting at offset %d", replica.partition.at, log, offset)
            restart_at(log, offset)
            replica.cut_high_watermark()


def _truncate(replica: Replica, offset: int) -> None:
    log, committed = replica.log, replica.high_watermark
    level = logging.WARNING if offset < committed else logging.INFO
    _logger.log(
        level, "%s: truncating from offset %d to %d, to match the leader", replica.partition.at, log.next_offset, offset
    )
    truncate_to(log, offset)
    replica.cut_high_watermark()


async def _offset_of(timestamp: int, replica: Replica, connection: Connection, node_id: int) -> int:
    at = replica.partition.at
    wanted = ListOffsetsPartition(
        partition_index=at.partition, current_leader_epoch=replica.leader_epoch, timestamp=timestamp
    )
    topic = ListOffsetsTopic(name=at.topic, partitions=(wanted,))
    answer = await connection.ask(ListOffsetsRequest(replica_id=node_id, topics=(topic,)))
    found = answer.topics[0].partitions[0]
    raise_for(found.error_code, f"{connection.address} could not list the offsets of {at}")
    return found.offset
