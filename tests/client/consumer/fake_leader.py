"""A fake broker that answers fetches from memory, or with errors set by a test."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.client.fake_broker import FakeBroker

from ottla.records.batch import read_header
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

QUICK: dict[str, Any] = {"backoff_first_ms": 1, "backoff_max_ms": 5, "leader_election_retry_ms": 20}


class FakeLeader(FakeBroker):
    def __init__(self, *batches: bytes, node_id: int = 0) -> None:
        super().__init__({FetchRequest: self._fetch, ListOffsetsRequest: self._list_offsets}, node_id=node_id)
        self.batches = list(batches)
        self.refusals: list[int | PartitionData] = []
        """What to answer to the next fetches instead."""
        self.list_refusals: list[int] = []
        self.throttle_ms = 0
        self.top_level_errors: list[int] = []
        self.aborted: Sequence[AbortedTransaction] = ()
        self.fetches: list[FetchPartition] = []
        self.waits_ms: list[int] = []

    @property
    def end(self) -> int:
        return read_header(self.batches[-1]).next_offset if self.batches else 0

    async def _fetch(self, request: FetchRequest) -> FetchResponse:
        self.waits_ms.append(request.max_wait_ms)
        if self.top_level_errors:
            return FetchResponse(error_code=self.top_level_errors.pop(0), responses=())
        answers = []
        for topic in request.topics:
            self.fetches += topic.partitions
            partitions = tuple(self._read(wanted) for wanted in topic.partitions)
            answers.append(FetchableTopicResponse(topic=topic.topic, partitions=partitions))
        if not any(data.records or data.error_code for answer in answers for data in answer.partitions):
            await asyncio.sleep(request.max_wait_ms / 1000)
        return FetchResponse(throttle_time_ms=self.throttle_ms, responses=tuple(answers))

    def _read(self, wanted: FetchPartition) -> PartitionData:
        refusal = self.refusals.pop(0) if self.refusals else 0
        if isinstance(refusal, PartitionData):
            return refusal
        rest = [each for each in self.batches if read_header(each).last_offset >= wanted.fetch_offset]
        return PartitionData(
            partition_index=wanted.partition,
            error_code=refusal,
            high_watermark=self.end,
            last_stable_offset=self.end,
            aborted_transactions=tuple(self.aborted),
            records=b"" if refusal else b"".join(rest)[: max(wanted.partition_max_bytes, 1)],
        )

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        error = self.list_refusals.pop(0) if self.list_refusals else 0
        return ListOffsetsResponse(
            topics=tuple(
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            error_code=error,
                            offset=self.end if each.timestamp == -1 else 0,
                        )
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )
