"""DescribeProducers (61), DescribeTransactions (65), ListTransactions (66), and WriteTxnMarkers (27), with which
Kafka's tools end hanging transactions.
"""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import TYPE_CHECKING, Final

from ottla.broker.coordinators.end_markers import write_end_markers
from ottla.broker.requests.turns import Turns
from ottla.broker.roles import NO_EPOCH
from ottla.core.errors import ApiError, ErrorCode
from ottla.core.ids import TopicPartition
from ottla.core.patterns import InvalidPattern, Pattern
from ottla.records.control import EndMarker
from ottla.storage.catalog.entries import AclOperation, ResourceType
from ottla.transactions.states import State
from ottla.wire.messages import describe_transactions as described
from ottla.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from ottla.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.turns import InTurns
    from ottla.transactions.transaction import Transaction

_NONE: Final = -1
_STATES: Final = {state.shown: state for state in State}


# Transactions


def describe_transactions(
    broker: Broker, request: DescribeTransactionsRequest, _context: Context
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=tuple(_described(broker, each) for each in request.transactional_ids)
    )


def _described(broker: Broker, transactional_id: str) -> described.TransactionState:
    error = broker.transactions.error_for(transactional_id)
    known = None if error else broker.transactions.rules.get(transactional_id)
    if known is None:
        error = error or (ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else ErrorCode.INVALID_REQUEST)
        return described.TransactionState(
            error_code=error,
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=(),
        )
    topics = groupby(sorted(known.partitions), key=lambda at: at.topic)
    return described.TransactionState(
        error_code=ErrorCode.NONE,
        transactional_id=transactional_id,
        transaction_state=known.state.shown,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.started_ms,
        producer_id=known.producer_id,
        producer_epoch=known.epoch,
        topics=tuple(
            described.TopicData(topic=topic, partitions=tuple(at.partition for at in those)) for topic, those in topics
        ),
    )


def list_transactions(
    broker: Broker, request: ListTransactionsRequest, context: Context
) -> InTurns[ListTransactionsResponse]:
    unknown = tuple(name for name in dict.fromkeys(request.state_filters) if name not in _STATES)
    try:
        found = yield from _listed(broker, request, context)
    except InvalidPattern:
        error, found = ErrorCode.INVALID_REGULAR_EXPRESSION, []
    else:
        error = broker.transactions.listing_error()
    return ListTransactionsResponse(
        error_code=error, unknown_state_filters=unknown, transaction_states=() if error else tuple(found)
    )


def _listed(broker: Broker, request: ListTransactionsRequest, context: Context) -> InTurns[list[TransactionState]]:
    """Raises InvalidPattern."""
    wanted = request.transactional_id_pattern
    pattern = Pattern(wanted) if wanted else None
    filters = _Filters(request, broker.transactions.now_ms())
    authorizer = broker.security.authorizer
    turns = Turns()
    found = []
    for transactional_id, known in list(broker.transactions.rules):
        if turns.are_over():
            yield
        # Before the pattern is matched: neither its time nor its failure may reveal hidden transactions.
        if authorizer is not None and not authorizer.is_allowed(
            context, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id
        ):
            continue
        if filters.want(known) and (pattern is None or pattern.matches(transactional_id)):
            found.append(
                TransactionState(
                    transactional_id=transactional_id,
                    producer_id=known.producer_id,
                    transaction_state=known.state.shown,
                )
            )
    return found


class _Filters:
    def __init__(self, request: ListTransactionsRequest, now_ms: int) -> None:
        self._producers = frozenset(request.producer_id_filters)
        self._states = frozenset(request.state_filters)
        self._duration_ms = request.duration_filter
        self._now_ms = now_ms

    def want(self, known: Transaction) -> bool:
        if known.state is State.DEAD:
            return False
        if self._producers and known.producer_id not in self._producers:
            return False
        if self._states and known.state.shown not in self._states:
            return False
        age_ms = self._now_ms - known.started_ms
        return self._duration_ms < 0 or (known.started_ms >= 0 and age_ms > self._duration_ms)


# Producers


def describe_producers(
    broker: Broker, request: DescribeProducersRequest, _context: Context
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=tuple(
            TopicResponse(
                name=topic.name,
                partitions=tuple(_producers(broker, topic.name, index) for index in topic.partition_indexes),
            )
            for topic in request.topics
        )
    )


def _producers(broker: Broker, topic: str, index: int) -> PartitionResponse:
    try:
        partition = broker.topics.partition(topic, index)
        partition.check_leader(NO_EPOCH)
        producers = partition.log.producers.producers
    except ApiError as refused:
        return PartitionResponse(
            partition_index=index, error_code=refused.code, error_message=str(refused), active_producers=()
        )
    return PartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE,
        active_producers=tuple(
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.batches[-1].last_sequence if producer.batches else _NONE,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_start,
            )
            for producer_id, producer in producers.items()
        ),
    )


# Markers


async def write_txn_markers(
    broker: Broker, request: WriteTxnMarkersRequest, _context: Context
) -> WriteTxnMarkersResponse:
    # Concurrently: each waits for replication, and a coordinator sends many at once.
    markers = await asyncio.gather(*(_marked(broker, marker) for marker in request.markers))
    return WriteTxnMarkersResponse(markers=tuple(markers))


async def _marked(broker: Broker, asked: WritableTxnMarker) -> WritableTxnMarkerResult:
    marker = EndMarker(asked.transaction_result, asked.coordinator_epoch, asked.transaction_version)
    places = [TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partition_indexes]
    errors = await write_end_markers(broker, (asked.producer_id, asked.producer_epoch), marker, places)
    return WritableTxnMarkerResult(
        producer_id=asked.producer_id,
        topics=tuple(
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=tuple(
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=errors[TopicPartition(topic.name, index)]
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in asked.topics
        ),
    )
