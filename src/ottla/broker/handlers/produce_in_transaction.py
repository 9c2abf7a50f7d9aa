"""Checks of a produce request with a transactional id before its batches are appended."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.broker.coordinators.transaction_membership import InTransaction, MembershipApi
from ottla.broker.interfaces.in_process_requests import Refused, raise_refusal
from ottla.core.errors import ApiError, ErrorCode
from ottla.records.batch import TRANSACTIONAL, check_produced, read_header

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.wire.messages.produce import ProduceRequest, TopicProduceData

_BY_ID_SINCE: Final = 13
_PRODUCE: Final = MembershipApi(joins_since=12, abortable_since=11, try_later=ErrorCode.NOT_ENOUGH_REPLICAS)
_ATTRIBUTES_AT: Final = 22
"""The lower byte of a batch's attributes."""


async def join_transaction(
    broker: Broker, request: ProduceRequest, transactional_id: str, version: int
) -> InTransaction:
    """Query the transaction's coordinator if necessary. Errors are reported when a batch is checked."""
    transaction = InTransaction(broker, transactional_id, is_joining=version >= _PRODUCE.joins_since)
    wanted: dict[tuple[int, int], set[Partition]] = {}
    for topic in request.topic_data:
        for part in topic.partition_data:
            with suppress(ApiError):
                partition = _find(broker, topic, part.index, version)
                producer = _producer(part.records)
                if producer is not None:
                    wanted.setdefault(producer, set()).add(partition)
    await transaction.ask(wanted)
    return transaction


def _find(broker: Broker, topic: TopicProduceData, index: int, version: int) -> Partition:
    if version >= _BY_ID_SINCE:
        return broker.topics.partition_by_id(topic.topic_id, index)
    return broker.topics.partition(topic.name, index)


def _producer(records: object) -> tuple[int, int] | None:
    """The transaction of these records, if any."""
    if not isinstance(records, memoryview) or len(records) <= _ATTRIBUTES_AT:
        return None
    if not records[_ATTRIBUTES_AT] & TRANSACTIONAL:
        return None
    header = read_header(records)
    return header.producer_id, header.producer_epoch


def check_in_transaction(
    transaction: InTransaction | None, partition: Partition, records: memoryview, version: int
) -> None:
    """Reject a transactional batch outside its producer's open transaction: it would never be completed.

    In the same step as the append, so that the transaction cannot end in between.
    """
    header = check_produced(records)
    if transaction is None:
        raise Refused(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch without a transactional id"
        )
    error = transaction.error_for(partition, (header.producer_id, header.producer_epoch))
    raise_refusal(_PRODUCE.error_for(error, version), f"{partition.at} is not in the transaction: {error.name}")
