"""A low-level transactional producer: one call per request, in any version."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ErrorCode
from ottla.records.encode import BatchBuilder
from ottla.records.reader import RecordReader
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

if TYPE_CHECKING:
    from .raw_client import RawClient

OLD, NEW = "old", "new"
_ADD: Final = 3
_END: Final = {OLD: 3, NEW: 5}
_PRODUCE: Final = {OLD: 9, NEW: 12}
_COMMIT: Final = {OLD: 3, NEW: 5}


class Transactional:
    """`flow` "old": partitions must be added and epochs stay the same; "new": since KIP-890."""

    def __init__(self, client: RawClient, transactional_id: str, flow: str = OLD, timeout_ms: int = 60_000) -> None:
        self.client = client
        self.id = transactional_id
        self.flow = flow
        self._sequences: dict[tuple[str, int], int] = {}
        told = client.ask(
            InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms), 4
        )
        assert told.error_code == ErrorCode.NONE, told
        self.producer_id, self.epoch = told.producer_id, told.producer_epoch

    def add(self, topic: str, partition: int = 0, version: int = _ADD) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=topic, partitions=(partition,)),),
        )
        [answer] = self.client.ask(request, version).results_by_topic_v3_and_below
        return answer.results_by_partition[0].partition_error_code

    def send(self, topic: str, *values: bytes, partition: int = 0, version: int | None = None) -> int:
        """Produce; the response may be an error."""
        builder = BatchBuilder()
        for value in values:
            builder.append(time.time_ns() // 1_000_000, None, value)
        sequence = self._sequences.get((topic, partition), 0)
        records = builder.build(
            producer_id=self.producer_id, producer_epoch=self.epoch, base_sequence=sequence, is_transactional=True
        )
        data = TopicProduceData(
            name=topic, partition_data=(PartitionProduceData(index=partition, records=bytes(records)),)
        )
        request = ProduceRequest(transactional_id=self.id, acks=-1, timeout_ms=1000, topic_data=(data,))
        [answer] = self.client.ask(request, version or _PRODUCE[self.flow]).responses
        error = answer.partition_responses[0].error_code
        if error == ErrorCode.NONE:
            self._sequences[topic, partition] = sequence + len(values)
        return error

    def write(self, topic: str, *values: bytes, partition: int = 0) -> None:
        if self.flow == OLD:
            assert self.add(topic, partition) == ErrorCode.NONE
        assert self.send(topic, *values, partition=partition) == ErrorCode.NONE

    def add_group(self, group: str) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.id, producer_id=self.producer_id, producer_epoch=self.epoch, group_id=group
        )
        return self.client.ask(request, 3).error_code

    def send_offset(self, group: str, topic: str, offset: int) -> int:
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=self.id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=(TxnOffsetCommitRequestTopic(name=topic, partitions=(part,)),),
        )
        [answer] = self.client.ask(request, _COMMIT[self.flow]).topics
        return answer.partitions[0].error_code

    def end(self, *, is_commit: bool, version: int | None = None) -> int:
        request = EndTxnRequest(
            transactional_id=self.id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=is_commit,
        )
        answer = self.client.ask(request, version or _END[self.flow])
        if self.flow == NEW and answer.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()
        return answer.error_code

    def commit(self) -> None:
        assert self.end(is_commit=True) == ErrorCode.NONE

    def abort(self) -> None:
        assert self.end(is_commit=False) == ErrorCode.NONE


def committed_fetch(topic: str, offset: int = 0, *, max_wait_ms: int = 0) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=1,
        session_epoch=-1,
        topics=(FetchTopic(topic=topic, partitions=(wanted,)),),
    )


def fetched(client: RawClient, topic: str, offset: int = 0) -> PartitionData:
    [data] = client.ask(committed_fetch(topic, offset), 12).responses[0].partitions
    return data


def visible(client: RawClient, topic: str) -> list[bytes | None]:
    """Values read with read_committed, without those of aborted transactions."""
    data = fetched(client, topic)
    aborted = {(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()}
    return [value for offset, value in _values(data) if not any(first <= offset for _, first in aborted)]


def _values(data: PartitionData) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in RecordReader(bytes(data.records or b""))]
