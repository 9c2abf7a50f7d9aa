"""The records of `__transaction_state`, encoded and decoded in Kafka's formats.

Values are written in version 1, as by Kafka with `transaction.version` 1 or higher, and read in 0 and 1. A
record without a value is a tombstone.
"""

from __future__ import annotations

from itertools import groupby
from typing import Final, NamedTuple

from ottla.core.errors import ProtocolError
from ottla.core.ids import TopicPartition
from ottla.transactions.formats import TopicPartitions, TransactionKey, TransactionValue
from ottla.transactions.states import State
from ottla.transactions.transaction import Transaction
from ottla.wire import internal_records
from ottla.wire.internal_records import known_version, version_of

TOPIC: Final = "__transaction_state"

_KEY: Final = 0
_VALUE: Final = 1


class KeyValue(NamedTuple):
    """The bytes of a record."""

    key: bytes
    value: bytes | None


def encode(transactional_id: str, transaction: Transaction | None) -> KeyValue:
    key = internal_records.encode(TransactionKey(transactional_id=transactional_id), _KEY, is_flexible=False)
    if transaction is None:
        return KeyValue(key, None)
    return KeyValue(key, internal_records.encode(_value_of(transaction), _VALUE, is_flexible=True))


def decode_key(data: bytes) -> str | None:
    """The transactional id; None if the key is of a newer type. Raises ProtocolError if it is malformed."""
    version = version_of(data, TOPIC)
    if version != _KEY:
        return None
    return internal_records.decode(TransactionKey, data, version, is_flexible=False).transactional_id


def decode_value(data: bytes) -> Transaction:
    version = known_version(version_of(data, TOPIC), _VALUE, TOPIC)
    value = internal_records.decode(TransactionValue, data, version, is_flexible=version >= 1)
    try:
        state = State(value.transaction_status)
    except ValueError as unknown:
        raise ProtocolError(f"a record of {TOPIC} has unknown state {value.transaction_status}") from unknown
    return Transaction(
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(each.topic, number)
            for each in value.transaction_partitions or ()
            for number in each.partition_ids
        ),
        updated_ms=value.transaction_last_update_timestamp_ms,
        started_ms=value.transaction_start_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def _value_of(transaction: Transaction) -> TransactionValue:
    by_topic = groupby(sorted(transaction.partitions), key=lambda at: at.topic)
    partitions = tuple(
        TopicPartitions(topic=topic, partition_ids=tuple(at.partition for at in those)) for topic, those in by_topic
    )
    return TransactionValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        # As in Kafka: null in states without partitions.
        transaction_partitions=None if transaction.state is State.EMPTY else partitions,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )
