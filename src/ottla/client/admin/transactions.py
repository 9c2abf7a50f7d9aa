"""Transactions: list, describe, abort, and find hanging ones."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.client.admin.requests import AdminRequests, LeaderRequest, raise_if_error
from ottla.client.errors import BrokerError, broker_error, raise_for
from ottla.client.retries import RetryBudget
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.consumer_protocol import by_topic
from ottla.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TRANSACTION: Final = 1
_NONE: Final = -1
_SHORT_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class TransactionListing:
    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    coordinator: int
    timeout_ms: int
    started_ms: int | None
    """None if no transaction is open."""
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer that has written to a partition."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_timestamp: int
    transaction_start: int | None
    """The first offset of its open transaction."""


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    at: TopicPartition
    producer: ActiveProducer


class TransactionAdmin(AdminRequests):
    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = _NONE,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """All transactional ids, or the matching ones. Each broker lists its own, so all of them are queried."""
        request = ListTransactionsRequest(
            state_filters=tuple(states),
            producer_id_filters=tuple(producer_ids),
            duration_filter=longer_than_ms,
            transactional_id_pattern=pattern,
        )
        await self._router.refresh(())
        nodes = list(self._router.view.brokers)
        answers = await asyncio.gather(*(self._router.ask(request, node_id=node_id) for node_id in nodes))
        found = {}
        for node_id, answer in zip(nodes, answers, strict=True):
            raise_for(answer.error_code, "cannot list transactions")
            for each in answer.transaction_states:
                found[each.transactional_id] = TransactionListing(
                    each.transactional_id, each.producer_id, each.transaction_state, node_id
                )
        return [found[name] for name in sorted(found)]

    async def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
        response = await self._ask_coordinator(
            transactional_id,
            request,
            lambda answer: [each.error_code for each in answer.transaction_states],
            kind=_TRANSACTION,
        )
        [described] = response.transaction_states
        raise_for(described.error_code, f"cannot describe the transactional id {transactional_id!r}")
        return TransactionDescription(
            transactional_id=transactional_id,
            producer_id=described.producer_id,
            producer_epoch=described.producer_epoch,
            state=described.transaction_state,
            coordinator=await self._router.coordinator(transactional_id, _TRANSACTION),
            timeout_ms=described.transaction_timeout_ms,
            started_ms=None if described.transaction_start_time_ms < 0 else described.transaction_start_time_ms,
            partitions=frozenset(
                TopicPartition(topic.topic, number) for topic in described.topics for number in topic.partitions
            ),
        )

    async def end_transactions_of(self, transactional_id: str) -> None:
        """Abort the open transaction of this id and fence its producer."""
        await self.describe_transaction(transactional_id)  # InitProducerId would create an unknown id
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=_SHORT_MS)
        retries = RetryBudget(self._router)
        while True:
            response = await self._ask_coordinator(
                transactional_id, request, lambda answer: (answer.error_code,), kind=_TRANSACTION
            )
            # Kafka's response while the abort is in progress.
            is_under_way = response.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
            if not is_under_way or await retries.is_over():
                break
        raise_for(response.error_code, f"cannot end the transaction of {transactional_id!r}")

    async def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[ActiveProducer, ...] | BrokerError]:
        """The producers of these partitions, with their open transactions."""
        return await self._ask_leaders(LeaderRequest(dict.fromkeys(partitions), self._describe_producers))

    async def abort_transaction(self, open_one: OpenTransaction) -> None:
        """Write an abort marker at the partition's leader, regardless of the coordinator's state."""
        outcomes = await self._ask_leaders(LeaderRequest({open_one.at: open_one.producer}, self._write_markers))
        raise_if_error(outcomes[open_one.at])

    async def find_hanging_transactions(
        self, partitions: Iterable[TopicPartition], older_than_ms: int, now_ms: int
    ) -> list[OpenTransaction]:
        """Open transactions without writes for this long that no coordinator will end."""
        described = await self.describe_producers(partitions)
        suspects = [
            OpenTransaction(at, producer)
            for at, producers in described.items()
            for producer in raise_if_error(producers)
            if producer.transaction_start is not None and producer.last_timestamp <= now_ms - older_than_ms
        ]
        if not suspects:
            return []
        listed = await self.list_transactions(producer_ids={each.producer.producer_id for each in suspects})
        known = {each.producer_id: await self.describe_transaction(each.transactional_id) for each in listed}
        return [each for each in suspects if not _is_coordinated(each, known)]

    async def _describe_producers(
        self, leader: int, part: Mapping[TopicPartition, None]
    ) -> dict[TopicPartition, tuple[ActiveProducer, ...] | BrokerError]:
        topics = tuple(TopicRequest(name=each.topic, partition_indexes=each.partitions) for each in by_topic(part))
        response = await self._router.ask(DescribeProducersRequest(topics=topics), node_id=leader)
        found: dict[TopicPartition, tuple[ActiveProducer, ...] | BrokerError] = {}
        for topic in response.topics:
            for each in topic.partitions:
                at = TopicPartition(topic.name, each.partition_index)
                found[at] = (
                    broker_error(each.error_code, f"producers of {at}", each.error_message)
                    if each.error_code
                    else tuple(
                        ActiveProducer(
                            one.producer_id,
                            one.producer_epoch,
                            one.coordinator_epoch,
                            one.last_timestamp,
                            None if one.current_txn_start_offset < 0 else one.current_txn_start_offset,
                        )
                        for one in each.active_producers
                    )
                )
        return found

    async def _write_markers(
        self, leader: int, part: Mapping[TopicPartition, ActiveProducer]
    ) -> dict[TopicPartition, BrokerError | None]:
        markers = tuple(
            WritableTxnMarker(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                transaction_result=False,
                topics=(WritableTxnMarkerTopic(name=at.topic, partition_indexes=(at.partition,)),),
                # Not set before the first end marker.
                coordinator_epoch=max(producer.coordinator_epoch, 0),
            )
            for at, producer in part.items()
        )
        response = await self._router.ask(WriteTxnMarkersRequest(markers=markers), node_id=leader)
        codes = {
            TopicPartition(topic.name, each.partition_index): each.error_code
            for marker in response.markers
            for topic in marker.topics
            for each in topic.partitions
        }
        return {
            at: None if codes[at] == ErrorCode.NONE else broker_error(codes[at], f"the transaction in {at}")
            for at in part
        }


def _is_coordinated(suspect: OpenTransaction, known: Mapping[int, TransactionDescription]) -> bool:
    described = known.get(suspect.producer.producer_id)
    return described is not None and suspect.at in described.partitions
