"""Responses of the share coordinator, to this node or to others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ottla.broker.requests.turns import Turns
from ottla.core.errors import ApiError, ErrorCode, ProtocolError
from ottla.share.formats import StateKey
from ottla.share.records import changes_of
from ottla.wire.messages import delete_share_group_state as deleting
from ottla.wire.messages import initialize_share_group_state as initializing
from ottla.wire.messages import read_share_group_state as reading
from ottla.wire.messages import read_share_group_state_summary as summing
from ottla.wire.messages import write_share_group_state as writing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from ottla.broker.broker import Broker
    from ottla.broker.share.coordinator import ShareCoordinator

    StateRequest: TypeAlias = (
        initializing.InitializeShareGroupStateRequest
        | reading.ReadShareGroupStateRequest
        | writing.WriteShareGroupStateRequest
        | deleting.DeleteShareGroupStateRequest
        | summing.ReadShareGroupStateSummaryRequest
    )
    StatePart: TypeAlias = (
        initializing.PartitionData
        | reading.PartitionData
        | writing.PartitionData
        | deleting.PartitionData
        | summing.PartitionData
    )
    StateResponse: TypeAlias = (
        initializing.InitializeShareGroupStateResponse
        | reading.ReadShareGroupStateResponse
        | writing.WriteShareGroupStateResponse
        | deleting.DeleteShareGroupStateResponse
        | summing.ReadShareGroupStateSummaryResponse
    )
    StateResult: TypeAlias = (
        initializing.PartitionResult
        | reading.PartitionResult
        | writing.PartitionResult
        | deleting.PartitionResult
        | summing.PartitionResult
    )
    Work = Callable[[ShareCoordinator, StateKey, Any], Awaitable[Any]]

T = TypeVar("T")

_AT_ONCE: Final = 500


async def initialize(
    broker: Broker, request: initializing.InitializeShareGroupStateRequest
) -> initializing.InitializeShareGroupStateResponse:
    async def work(
        coordinator: ShareCoordinator, key: StateKey, asked: initializing.PartitionData
    ) -> initializing.PartitionResult:
        await coordinator.initialize(key, asked.state_epoch, asked.start_offset)
        return initializing.PartitionResult(partition=key.partition, error_code=ErrorCode.NONE)

    results = await _each(broker, request, work, initializing.PartitionResult)
    return initializing.InitializeShareGroupStateResponse(
        results=tuple(
            initializing.InitializeShareGroupStateResult(topic_id=topic_id, partitions=those)
            for topic_id, those in results.items()
        )
    )


async def read(broker: Broker, request: reading.ReadShareGroupStateRequest) -> reading.ReadShareGroupStateResponse:
    async def work(coordinator: ShareCoordinator, key: StateKey, asked: reading.PartitionData) -> object:
        kept = await coordinator.read(key, asked.leader_epoch)
        return reading.PartitionResult(
            partition=key.partition,
            error_code=ErrorCode.NONE,
            state_epoch=kept.state_epoch,
            start_offset=kept.rules.start,
            state_batches=tuple(
                reading.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
                for first, last, state, count, _ in kept.rules.lasting()
            ),
        )

    results = await _each(broker, request, work, reading.PartitionResult)
    return reading.ReadShareGroupStateResponse(
        results=tuple(
            reading.ReadShareGroupStateResult(topic_id=topic_id, partitions=those)
            for topic_id, those in results.items()
        )
    )


async def write(broker: Broker, request: writing.WriteShareGroupStateRequest) -> writing.WriteShareGroupStateResponse:
    async def work(coordinator: ShareCoordinator, key: StateKey, asked: writing.PartitionData) -> object:
        epochs = asked.state_epoch, asked.leader_epoch
        await coordinator.write(key, epochs, asked.start_offset, changes_of(asked.state_batches))
        return writing.PartitionResult(partition=key.partition, error_code=ErrorCode.NONE)

    results = await _each(broker, request, work, writing.PartitionResult)
    return writing.WriteShareGroupStateResponse(
        results=tuple(
            writing.WriteShareGroupStateResult(topic_id=topic_id, partitions=those)
            for topic_id, those in results.items()
        )
    )


async def delete(
    broker: Broker, request: deleting.DeleteShareGroupStateRequest
) -> deleting.DeleteShareGroupStateResponse:
    async def work(coordinator: ShareCoordinator, key: StateKey, _: deleting.PartitionData) -> object:
        await coordinator.delete(key)
        return deleting.PartitionResult(partition=key.partition, error_code=ErrorCode.NONE)

    results = await _each(broker, request, work, deleting.PartitionResult)
    return deleting.DeleteShareGroupStateResponse(
        results=tuple(
            deleting.DeleteShareGroupStateResult(topic_id=topic_id, partitions=those)
            for topic_id, those in results.items()
        )
    )


async def summary(
    broker: Broker, request: summing.ReadShareGroupStateSummaryRequest
) -> summing.ReadShareGroupStateSummaryResponse:
    async def work(coordinator: ShareCoordinator, key: StateKey, _: summing.PartitionData) -> object:
        kept = await coordinator.summary(key)
        return summing.PartitionResult(
            partition=key.partition,
            error_code=ErrorCode.NONE,
            state_epoch=kept.state_epoch,
            leader_epoch=kept.leader_epoch,
            start_offset=kept.rules.start,
            delivery_complete_count=kept.rules.completed,
        )

    results = await _each(broker, request, work, summing.PartitionResult)
    return summing.ReadShareGroupStateSummaryResponse(
        results=tuple(
            summing.ReadShareGroupStateSummaryResult(topic_id=topic_id, partitions=those)
            for topic_id, those in results.items()
        )
    )


async def _each(
    broker: Broker,
    request: StateRequest,
    work: Work,
    result: Callable[..., T],
) -> dict[bytes, tuple[T, ...]]:
    """The result for each requested partition."""
    coordinator = broker.share.coordinator

    async def outcome(topic_id: bytes, asked: StatePart) -> T:
        key = StateKey(group_id=request.group_id, topic_id=topic_id, partition=asked.partition)
        code, message = ErrorCode.NOT_COORDINATOR, "a standalone broker does not serve share state requests"
        if coordinator is not None:
            try:
                return await work(coordinator, key, asked)  # type: ignore[no-any-return]  # one of `result`
            except ProtocolError as unreadable:
                code, message = ErrorCode.INVALID_REQUEST, str(unreadable)
            except ApiError as refused:
                code, message = refused.code, str(refused)
        return result(partition=asked.partition, error_code=code, error_message=message)

    turns = Turns()
    results: dict[bytes, tuple[T, ...]] = {}
    for topic in request.topics:
        done: list[T] = []
        for start in range(0, len(topic.partitions), _AT_ONCE):
            some = topic.partitions[start : start + _AT_ONCE]
            done += await asyncio.gather(*(outcome(topic.topic_id, each) for each in some))
            if turns.are_over():
                await asyncio.sleep(0)
        results[topic.topic_id] = tuple(done)
    return results
