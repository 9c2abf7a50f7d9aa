"""Requests to the coordinator of a share partition's state, on any node, with retries."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from ottla.broker.coordinators.placement import coordinator_in
from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.broker.peers.peer_batcher import PeerBatcher
from ottla.broker.share import state_answers
from ottla.broker.topics import SHARE_GROUP_STATE
from ottla.core.errors import ApiError, ErrorCode, LeaderNotAvailable
from ottla.share.records import state_name
from ottla.wire import apis
from ottla.wire.messages import delete_share_group_state as deleting
from ottla.wire.messages import initialize_share_group_state as initializing
from ottla.wire.messages import read_share_group_state as reading
from ottla.wire.messages import read_share_group_state_summary as summing
from ottla.wire.messages import write_share_group_state as writing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.replication.replication import Replication
    from ottla.broker.share.state_answers import StateRequest, StateResponse, StateResult
    from ottla.client.connection import Connection
    from ottla.share.fates import Change
    from ottla.share.formats import StateKey

_PATIENCE_S: Final = 5.0
_PAUSE_S: Final = 0.05
_NO_LEADER_EPOCH: Final = -1
_HERE: Final[Mapping[int, Any]] = {
    apis.INITIALIZE_SHARE_GROUP_STATE.key: state_answers.initialize,
    apis.READ_SHARE_GROUP_STATE.key: state_answers.read,
    apis.WRITE_SHARE_GROUP_STATE.key: state_answers.write,
    apis.DELETE_SHARE_GROUP_STATE.key: state_answers.delete,
    apis.READ_SHARE_GROUP_STATE_SUMMARY.key: state_answers.summary,
}
_OTHERS_MAY_KNOW: Final = frozenset(
    {
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""Retriable errors. All requests are idempotent."""


class ShareStateClient:
    """Raises ApiError on an error response, or on timeout."""

    def __init__(self, broker: Broker, replication: Replication) -> None:
        self._broker = broker
        self._replication = replication
        self._batcher = PeerBatcher["StateRequest", "StateResponse"](replication, "share-state", _ask_all)

    async def close(self) -> None:
        await self._batcher.close()

    async def initialize(self, key: StateKey, state_epoch: int, start: int) -> None:
        part = initializing.PartitionData(partition=key.partition, state_epoch=state_epoch, start_offset=start)
        topic = initializing.InitializeShareGroupStateTopic(topic_id=key.topic_id, partitions=(part,))
        await self._ask(key, initializing.InitializeShareGroupStateRequest(group_id=key.group_id, topics=(topic,)))

    async def read(self, key: StateKey, leader_epoch: int) -> reading.PartitionResult:
        part = reading.PartitionData(partition=key.partition, leader_epoch=leader_epoch)
        topic = reading.ReadShareGroupStateTopic(topic_id=key.topic_id, partitions=(part,))
        request = reading.ReadShareGroupStateRequest(group_id=key.group_id, topics=(topic,))
        return cast("reading.PartitionResult", await self._ask(key, request))

    async def write(self, key: StateKey, epochs: tuple[int, int], start: int, changes: Sequence[Change]) -> None:
        part = writing.PartitionData(
            partition=key.partition,
            state_epoch=epochs[0],
            leader_epoch=epochs[1],
            start_offset=start,
            state_batches=tuple(
                writing.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
                for first, last, state, count, _ in changes
            ),
        )
        topic = writing.WriteShareGroupStateTopic(topic_id=key.topic_id, partitions=(part,))
        await self._ask(key, writing.WriteShareGroupStateRequest(group_id=key.group_id, topics=(topic,)))

    async def delete(self, key: StateKey) -> None:
        part = deleting.PartitionData(partition=key.partition)
        topic = deleting.DeleteShareGroupStateTopic(topic_id=key.topic_id, partitions=(part,))
        await self._ask(key, deleting.DeleteShareGroupStateRequest(group_id=key.group_id, topics=(topic,)))

    async def summary(self, key: StateKey) -> summing.PartitionResult:
        part = summing.PartitionData(partition=key.partition, leader_epoch=_NO_LEADER_EPOCH)
        topic = summing.ReadShareGroupStateSummaryTopic(topic_id=key.topic_id, partitions=(part,))
        request = summing.ReadShareGroupStateSummaryRequest(group_id=key.group_id, topics=(topic,))
        return cast("summing.PartitionResult", await self._ask(key, request))

    async def _ask(self, key: StateKey, request: StateRequest) -> StateResult:
        give_up_at_s = asyncio.get_running_loop().time() + _PATIENCE_S
        while True:
            try:
                answer = await self._answer(key, request)
                [result] = answer.results[0].partitions
                raise_refusal(result.error_code, result.error_message)
            except ApiError as refused:
                if refused.code not in _OTHERS_MAY_KNOW or asyncio.get_running_loop().time() >= give_up_at_s:
                    raise
                await asyncio.sleep(_PAUSE_S)
            else:
                return result

    async def _answer(self, key: StateKey, request: StateRequest) -> StateResponse:
        if SHARE_GROUP_STATE not in self._broker.topics.by_name:
            self._broker.create_topic(SHARE_GROUP_STATE)
        found = coordinator_in(self._broker, self._replication.cluster, SHARE_GROUP_STATE, state_name(key))
        if found is None:
            raise LeaderNotAvailable(f"{state_name(key)} has no coordinator")
        if found.id == self._replication.node_id:
            answer: StateResponse = await _HERE[request.API.key](self._broker, request)
            return answer
        return await self._batcher.ask(found.id, request)


async def _ask_all(connection: Connection, requests: Sequence[StateRequest]) -> Sequence[StateResponse]:
    """Concurrently: each waits for replication separately."""
    answers: Sequence[Any] = await asyncio.gather(*[connection.ask(request) for request in requests])
    return answers
