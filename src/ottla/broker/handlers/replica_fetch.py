"""What is different about a fetch in a cluster: followers copy, and consumers may read from followers (KIP-392)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.cluster.replication.nearby import preferred_read_replica
from ottla.core.errors import ErrorCode, OffsetNotAvailable, OffsetOutOfRange
from ottla.wire.messages.fetch import LeaderIdAndEpoch, PartitionData

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.partition import Partition
    from ottla.broker.replication.replica import Replica
    from ottla.wire.messages.fetch import FetchPartition, FetchRequest

NO_FOLLOWER: Final = -1
_NOTHING_READ: Final = b""
_HINTED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def follower_in(request: FetchRequest) -> int:
    """Which broker fetches, if it is one; consumers are negative."""
    return max(request.replica_id, request.replica_state.replica_id, NO_FOLLOWER)


def readable_until(replica: Replica, request: FetchRequest, wanted: FetchPartition) -> int | None:
    """How far whoever asks may read here, where that is not as usual. A follower's fetch says how far it is."""
    follower = follower_in(request)
    if follower != NO_FOLLOWER:
        return _followed(replica, follower, request.replica_state.replica_epoch, wanted)
    if request.rack_id and replica.is_here and not replica.leads:
        replica.partition.check_epoch(wanted.current_leader_epoch)
        if wanted.fetch_offset > replica.high_watermark:
            raise OffsetNotAvailable(f"{replica.partition.at} is not copied as far as {wanted.fetch_offset} yet")
    else:
        replica.partition.check_leader(wanted.current_leader_epoch)
    return None


def _followed(replica: Replica, follower: int, broker_epoch: int, wanted: FetchPartition) -> int:
    replica.partition.check_leader(wanted.current_leader_epoch)
    log, offset = replica.log, wanted.fetch_offset
    if not log.start_offset <= offset <= log.next_offset:
        raise OffsetOutOfRange(f"{offset} is not in {log.start_offset}..{log.next_offset}")
    if wanted.last_fetched_epoch >= 0:
        epoch, end = replica.partition.leader_epochs.end_of(wanted.last_fetched_epoch, log.next_offset)
        if epoch < 0:
            raise OffsetOutOfRange(f"leader epoch {wanted.last_fetched_epoch} is later than {replica.leader_epoch}")
        if epoch != wanted.last_fetched_epoch or end < offset:
            return log.next_offset  # it is told where its log parted, and does not have what it asks behind
    replica.fetched(follower, offset, wanted.log_start_offset, broker_epoch)
    if replica.throttling.wait_to_send_s(replica, follower) > 0:
        return offset
    return log.next_offset


def without_throttled(partitions: Iterable[Partition], follower: int, until_s: float, now_s: float) -> float:
    """Until when a fetch waits: no longer than until one that is held to a rate may be sent more."""
    waits_s = (
        each.replica.throttling.wait_to_send_s(each.replica, follower)
        for each in partitions
        if each.replica is not None
    )
    return min([until_s, *(now_s + wait_s for wait_s in waits_s if wait_s > 0)])


def preferred_elsewhere(replica: Replica, request: FetchRequest, wanted: FetchPartition) -> PartitionData | None:
    """Where this consumer should read instead, if a replica is nearer to it."""
    leading = replica.leading
    if not request.rack_id or leading is None:
        return None
    node = preferred_read_replica(leading, replica.brokers, request.rack_id, wanted.fetch_offset)
    if node is None:
        return None
    return PartitionData(
        partition_index=wanted.partition,
        error_code=ErrorCode.NONE,
        high_watermark=replica.high_watermark,
        last_stable_offset=replica.partition.last_stable_offset,
        log_start_offset=replica.log.start_offset,
        aborted_transactions=None,
        preferred_read_replica=node,
        records=_NOTHING_READ,
    )


def with_leader_hint(partition: Partition, refusal: PartitionData) -> PartitionData:
    """Whom to ask instead (KIP-951)."""
    if refusal.error_code not in _HINTED:
        return refusal
    leader, epoch = partition.leader
    return replace(refusal, current_leader=LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch))
