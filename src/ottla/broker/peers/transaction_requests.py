"""Requests about transactions between brokers: writing end markers, and verifying or adding partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.peers.peer_batcher import PeerBatcher
from ottla.client.errors import raise_for
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ottla.broker.replication.replication import Replication
    from ottla.client.connection import Connection
    from ottla.records.control import EndMarker


class TransactionRequests:
    def __init__(self, replication: Replication) -> None:
        self._markers = PeerBatcher(replication, "markers", _write_markers)
        # Separate from markers, which wait for replication.
        self._memberships = PeerBatcher(replication, "membership", _ask_membership)

    async def close(self) -> None:
        await self._markers.close()
        await self._memberships.close()

    async def write_markers(
        self, node: int, producer: tuple[int, int], marker: EndMarker, places: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """The result of each; raises NodeUnreachable if there is no response."""
        asked = WritableTxnMarker(
            producer_id=producer[0],
            producer_epoch=producer[1],
            transaction_result=marker.is_commit,
            topics=tuple(
                WritableTxnMarkerTopic(name=name, partition_indexes=tuple(indexes))
                for name, indexes in _by_topic(places).items()
            ),
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        )
        result = await self._markers.ask(node, asked)
        return {
            TopicPartition(topic.name, part.partition_index): ErrorCode(part.error_code)
            for topic in result.topics
            for part in topic.partitions
        }

    async def membership(
        self,
        node: int,
        transactional_id: str,
        producer: tuple[int, int],
        places: Collection[TopicPartition],
        *,
        is_joining: bool,
    ) -> dict[TopicPartition, ErrorCode]:
        """Ask the coordinator to add partitions to a transaction, or to verify them."""
        asked = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=not is_joining,
            topics=tuple(
                AddPartitionsToTxnTopic(name=name, partitions=tuple(indexes))
                for name, indexes in _by_topic(places).items()
            ),
        )
        result = await self._memberships.ask(node, asked)
        return {
            TopicPartition(topic.name, part.partition_index): ErrorCode(part.partition_error_code)
            for topic in result.topic_results
            for part in topic.results_by_partition
        }


def _by_topic(places: Collection[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for at in sorted(places):
        topics.setdefault(at.topic, []).append(at.partition)
    return topics


async def _write_markers(
    connection: Connection, markers: Sequence[WritableTxnMarker]
) -> Sequence[WritableTxnMarkerResult]:
    return (await connection.ask(WriteTxnMarkersRequest(markers=tuple(markers)))).markers


async def _ask_membership(
    connection: Connection, asked: Sequence[AddPartitionsToTxnTransaction]
) -> Sequence[AddPartitionsToTxnResult]:
    answer = await connection.ask(AddPartitionsToTxnRequest(transactions=tuple(asked)))
    raise_for(answer.error_code, f"{connection.address} could not verify the partitions of a transaction")
    return answer.results_by_transaction
