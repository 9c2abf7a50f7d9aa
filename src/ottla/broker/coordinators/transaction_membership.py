"""Verifies that a partition is part of a transaction before it is written to, so that it gets an end marker (KIP-890).

A standalone broker is the coordinator, and checks in the same step as the append. In a cluster the coordinator is
queried if the producer has no open transaction in the partition yet; an end marker of that producer that is written in
between invalidates the response.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.coordinators.placement import coordinator_in
from ottla.broker.topics import TRANSACTION_STATE
from ottla.core.errors import ApiError, ErrorCode
from ottla.transactions.transaction import EPOCH_PER_TRANSACTION

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.core.ids import TopicPartition

    Producer = tuple[int, int]
    """Its id and epoch."""

_COORDINATOR_IS_AWAY: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
"""Errors that mean a retry may succeed, later or at another node."""


class MembershipApi(NamedTuple):
    """How an API writes to transactions and reports errors."""

    joins_since: int
    """Since this version a write adds the partition to the transaction (KIP-890)."""
    abortable_since: int
    try_later: ErrorCode
    """The retriable error that its clients handle without looking for another leader or coordinator."""

    def error_for(self, error: ErrorCode, version: int) -> ErrorCode:
        """The error as clients of this API know it."""
        if error in _COORDINATOR_IS_AWAY:
            return self.try_later
        match error:
            case ErrorCode.PRODUCER_FENCED:
                return ErrorCode.INVALID_PRODUCER_EPOCH
            case ErrorCode.TRANSACTION_ABORTABLE if version < self.abortable_since:
                return ErrorCode.INVALID_TXN_STATE
            case ErrorCode.CONCURRENT_TRANSACTIONS if version < self.joins_since:
                return self.try_later
        return error


class _Seen(NamedTuple):
    """The state of a partition when the coordinator was queried."""

    leader_epoch: int
    ends: int


class InTransaction:
    """A request of a transactional producer, and the partitions that it may write to."""

    def __init__(self, broker: Broker, transactional_id: str, *, is_joining: bool) -> None:
        self._broker = broker
        self._transactional_id = transactional_id
        self._is_joining = is_joining
        """Whether writes add partitions to the transaction."""
        self._answers: dict[tuple[TopicPartition, Producer], tuple[ErrorCode, _Seen]] = {}

    async def ask(self, wanted: Mapping[Producer, Collection[Partition]]) -> None:
        """Query the coordinator if necessary, before anything is written."""
        is_alone = self._broker.cluster is None
        if is_alone and not self._is_joining:
            return
        for producer, partitions in wanted.items():
            seen = {}
            for each in partitions:
                with suppress(ApiError):  # the append reports it
                    if is_alone or _must_ask(each, producer):
                        seen[each.at] = _seen(each, producer[0])
            if seen:
                errors = await self._ask_coordinator(producer, seen)
                for at, how in seen.items():
                    self._answers[at, producer] = errors.get(at, ErrorCode.UNKNOWN_SERVER_ERROR), how

    async def _ask_coordinator(
        self, producer: Producer, places: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        transactions, name = self._broker.transactions, self._transactional_id
        is_here = transactions.error_for(name) is ErrorCode.NONE
        if is_here and self._is_joining:
            error = await transactions.add_partitions(name, producer, places, EPOCH_PER_TRANSACTION)
            return dict.fromkeys(places, error)
        if is_here:
            return await transactions.verify(name, producer, places)
        if self._broker.cluster is None:
            return dict.fromkeys(places, transactions.error_for(name))
        return await self._ask_elsewhere(producer, places)

    async def _ask_elsewhere(
        self, producer: Producer, places: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        broker = self._broker
        assert broker.cluster is not None  # noqa: S101 - for mypy: standalone
        node = coordinator_in(broker, broker.cluster, TRANSACTION_STATE, self._transactional_id)
        if node is None or node.id == broker.cluster.node_id:
            return dict.fromkeys(places, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        try:
            return await broker.transactions.peer_requests.membership(
                node.id, self._transactional_id, producer, places, is_joining=self._is_joining
            )
        except ApiError as unreachable:
            return dict.fromkeys(places, ErrorCode(unreachable.code))

    def error_for(self, partition: Partition, producer: Producer) -> ErrorCode:
        """Why the producer may not write to this partition now. Must be called in the same step as the append."""
        if self._broker.cluster is None:
            answered = self._answers.get((partition.at, producer))
            if answered is not None and answered[0] is not ErrorCode.NONE:
                return answered[0]
            transactions = self._broker.transactions
            if error := transactions.error_for(self._transactional_id):
                return error
            return transactions.rules.verify(self._transactional_id, *producer, partition.at)
        if partition.log.producers.has_open(*producer):
            return ErrorCode.NONE
        error, seen = self._answers.get((partition.at, producer), (ErrorCode.CONCURRENT_TRANSACTIONS, None))
        if error is ErrorCode.NONE and seen != _seen(partition, producer[0]):
            # The verified transaction has ended since.
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return error


def _must_ask(partition: Partition, producer: Producer) -> bool:
    partition.check_leads()
    return not partition.log.producers.has_open(*producer)


def _seen(partition: Partition, producer_id: int) -> _Seen:
    known = partition.log.producers.producers.get(producer_id)
    return _Seen(partition.leader_epoch, 0 if known is None else known.ends)
