"""The record formats of `__transaction_state`, from Kafka's TransactionLogKey.json and TransactionLogValue.json."""

from typing import Annotated

from ottla.wire.declare import Int8, Int16, Int32, Int64, Message, String, Tag


class TransactionKey(Message, frozen=True, kw_only=True):
    transactional_id: String


class TopicPartitions(Message, frozen=True, kw_only=True):
    topic: String
    partition_ids: tuple[Int32, ...]


class TransactionValue(Message, frozen=True, kw_only=True):
    producer_id: Int64
    previous_producer_id: Annotated[Int64, Tag(0, since=1)] = -1
    next_producer_id: Annotated[Int64, Tag(1, since=1)] = -1
    producer_epoch: Int16
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: tuple[TopicPartitions, ...] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Annotated[Int16, Tag(2, since=1)] = 0
