"""DeleteRecords (21): raises the log start offset of partitions.

It takes effect at once for every reader. It is answered when no crash and no other leader can bring the records back:
the new log start offset is durable here (Kafka writes it with its next checkpoint), and the logs of all in-sync and
eligible replicas start there. After `timeout_ms` the response is REQUEST_TIMED_OUT; the records stay deleted. As in
Kafka, the space is reclaimed by the next retention check.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.requests.turns import FEW, Turns
from ottla.broker.roles import NO_EPOCH
from ottla.broker.upkeep.log_starts import note_starts
from ottla.core.errors import (
    ApiError,
    ErrorCode,
    InvalidTopic,
    OffsetOutOfRange,
    PolicyViolation,
    RequestTimedOut,
)
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.requests.context import Context
    from ottla.wire.messages.delete_records import DeleteRecordsPartition

_logger: Final = logging.getLogger(__name__)

_HIGH_WATERMARK: Final = -1
_NO_OFFSET: Final = -1


class _Deleted(NamedTuple):
    """The requested deletions that were applied locally."""

    partition: Partition
    offset: int
    low_watermark: int
    elsewhere: asyncio.Future[None] | None
    """Done when all in-sync and eligible replicas have deleted as well."""


async def delete_records(broker: Broker, request: DeleteRecordsRequest, context: Context) -> DeleteRecordsResponse:
    # Without duplicates, as in Kafka: for a repeated partition the last offset is used.
    wanted: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.name, {}).update((one.partition_index, one) for one in topic.partitions)
    if sum(map(len, wanted.values())) > FEW:
        await asyncio.sleep(0)
    turns = Turns()
    outcomes: dict[tuple[str, int], _Deleted | ApiError] = {}
    for name, partitions in wanted.items():
        for index, one in partitions.items():
            try:
                outcomes[name, index] = _delete(broker, name, one, request.timeout_ms / 1000)
            except ApiError as refused:
                _logger.info("%s-%d: could not delete records for %s: %s", name, index, context, refused)
                outcomes[name, index] = refused
            if turns.are_over():
                await asyncio.sleep(0)
    # Even if nothing was deleted: the start offset of an earlier request may not be durable yet.
    deleted = {one.partition: one.offset for one in outcomes.values() if isinstance(one, _Deleted)}
    results = {}
    try:
        failed = await note_starts(broker, deleted)
        for at, outcome in outcomes.items():
            results[at] = await _result(at[1], outcome, failed)
            if turns.are_over():
                await asyncio.sleep(0)
    finally:
        _stop_waiting(outcomes.values())
    if len(results) > FEW:
        await asyncio.sleep(0)
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(name=name, partitions=tuple(results[name, index] for index in partitions))
            for name, partitions in wanted.items()
        )
    )


async def _result(
    index: int, outcome: _Deleted | ApiError, failed: Mapping[Partition, ApiError]
) -> DeleteRecordsPartitionResult:
    if isinstance(outcome, ApiError):
        return _refusal(index, outcome.code)
    low_watermark = outcome.low_watermark
    try:
        if outcome.elsewhere is not None:
            await outcome.elsewhere
            low_watermark = outcome.partition.low_watermark
        if outcome.partition in failed:
            return _refusal(index, failed[outcome.partition].code)
    except RequestTimedOut as late:
        return _refusal(index, late.code, low_watermark)
    except ApiError as refused:
        return _refusal(index, refused.code)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark, error_code=ErrorCode.NONE)


def _stop_waiting(outcomes: Iterable[_Deleted | ApiError]) -> None:
    """Retrieve the outcome of a request whose client has disconnected."""
    for one in outcomes:
        elsewhere = one.elsewhere if isinstance(one, _Deleted) else None
        if elsewhere is not None and not elsewhere.cancel() and not elsewhere.cancelled():
            elsewhere.exception()


def _refusal(index: int, code: ErrorCode, low_watermark: int = _NO_OFFSET) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark, error_code=code)


def _delete(broker: Broker, topic: str, wanted: DeleteRecordsPartition, timeout_s: float) -> _Deleted:
    partition = broker.topics.partition(topic, wanted.partition_index)
    if broker.topics.by_name[topic].entry.is_internal:
        raise InvalidTopic(f"Cannot delete records of internal topic {topic}")
    partition.check_leader(NO_EPOCH)
    log = partition.log
    if log.config.cleanup_policy == "compact":
        raise PolicyViolation(f"Records of partition {partition.at} can not be deleted due to the configured policy")
    offset = partition.high_watermark if wanted.offset == _HIGH_WATERMARK else wanted.offset
    if not 0 <= offset <= partition.high_watermark:
        raise OffsetOutOfRange(f"offset {offset} is out of range 0..{partition.high_watermark}")
    # Below the log start offset there is nothing to delete, which is not an error.
    if offset > log.start_offset:
        log.raise_start(offset)
    return _Deleted(partition, offset, partition.low_watermark, partition.deleted_everywhere(offset, timeout_s))
