"""A fake cluster for producers, scripted by tests."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.client.fake_broker import FakeBroker, serving, topic

from ottla.client.client import Client
from ottla.records.batch import check_produced
from ottla.records.reader import RecordReader
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ottla.client.producer.producer import Producer

QUICK = {"backoff_first_ms": 1, "backoff_max_ms": 5, "leader_election_retry_ms": 20}


class Leader(FakeBroker):
    """Appends produced batches to `logs` in order of sequence, unless `refuse` says otherwise."""

    def __init__(self, node_id: int = 0) -> None:
        super().__init__({ProduceRequest: self._produce, InitProducerIdRequest: _identify}, node_id=node_id)
        self.logs: dict[tuple[str, int], list[bytes | None]] = {}
        self.requests: list[list[tuple[str, int, int]]] = []
        """Of each produce request: topic, partition and number of records."""
        self.stamps: list[tuple[int, int, int]] = []
        self.refusals: list[int | PartitionProduceResponse] = []
        """Errors to answer to the next batches instead of appending them."""
        self.arrivals: asyncio.Queue[ProduceRequest] = asyncio.Queue()
        self.before_answer: Callable[[ProduceRequest], Any] | None = None

    async def _produce(self, request: ProduceRequest) -> ProduceResponse | None:
        answers = []
        parts = [(topic.name, part) for topic in request.topic_data for part in topic.partition_data]
        headers = [check_produced(part.records) for _, part in parts]  # type: ignore[arg-type]
        self.requests.append(
            [(name, part.index, header.record_count) for (name, part), header in zip(parts, headers, strict=True)]
        )
        self.stamps += [(header.producer_id, header.producer_epoch, header.base_sequence) for header in headers]
        for each in request.topic_data:
            results = tuple(self._append(each.name, part.index, part.records) for part in each.partition_data)
            answers.append(TopicProduceResponse(name=each.name, partition_responses=results))
        self.arrivals.put_nowait(request)
        if self.before_answer is not None:
            waited = self.before_answer(request)
            if asyncio.iscoroutine(waited):
                await waited
        return ProduceResponse(responses=tuple(answers)) if request.acks else None

    def _append(self, name: str, index: int, records: Any) -> PartitionProduceResponse:
        if self.refusals:
            refusal = self.refusals.pop(0)
            if isinstance(refusal, PartitionProduceResponse):
                return refusal
            if refusal:
                return PartitionProduceResponse(index=index, error_code=refusal, base_offset=-1)
        log = self.logs.setdefault((name, index), [])
        base_offset = len(log)
        log += [record.value for record in RecordReader(records)]
        return PartitionProduceResponse(index=index, error_code=0, base_offset=base_offset)


def _identify(_request: InitProducerIdRequest) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=0, producer_id=7, producer_epoch=0)


@asynccontextmanager
async def producing(
    *leaders: Leader, partitions: int = 1, client: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[Producer[bytes, bytes]]:
    """A producer for these brokers; the first leads every partition of topic "t"."""
    async with serving(*leaders):
        for leader in leaders:
            leader.topics["t"] = topic("t", leaders=(leaders[0].node_id,) * partitions)
        async with (
            Client(leaders[0].address, **{**QUICK, **(client or {})}) as connected,
            connected.producer(**options) as producer,
        ):
            yield producer
