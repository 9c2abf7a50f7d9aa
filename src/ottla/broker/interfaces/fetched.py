"""Reading for other protocols: fetched like a Kafka client, then decoded in slices."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from msgspec import structs

from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.broker.requests.turns import Turns
from ottla.core.errors import ApiError
from ottla.records.batch import read_header
from ottla.records.control import read_end_marker
from ottla.records.reader import RecordReader
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ottla.broker.batches.inflating import Allowance, Inflating
    from ottla.records.reader import Record
    from ottla.wire.codec import RequestFor
    from ottla.wire.declare import Response
    from ottla.wire.messages.fetch import AbortedTransaction

ResponseT = TypeVar("ResponseT", bound="Response")

_FETCH_BY_NAME: Final = 12
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
_TURN_RECORDS: Final = 200
_ENOUGH_BYTES: Final = 4 << 20
"""After this many bytes no further batch is decompressed; the rest is read the next time."""


class FetchClient(Protocol):
    @property
    def inflating(self) -> Inflating: ...
    async def ask(self, request: RequestFor[ResponseT], version: int | None = None) -> ResponseT: ...


class Piece(NamedTuple):
    records: list[Record]
    next_offset: int
    """The next offset to read; it may be beyond aborted records and control records."""


async def fetch(
    client: FetchClient,
    topic: str,
    positions: Mapping[int, int],
    *,
    max_bytes: int,
    max_wait_ms: int = 0,
    isolation_level: int = READ_COMMITTED,
) -> list[PartitionData]:
    """The decompressed records of these partitions from these offsets; waits until there are some."""
    wanted = tuple(
        FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        for partition, offset in positions.items()
    )
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_epoch=-1,
        topics=(FetchTopic(topic=topic, partitions=wanted),),
    )
    answer = await client.ask(request, _FETCH_BY_NAME)
    raise_refusal(answer.error_code)
    allowance = client.inflating.allowance()
    return [await _inflated(client.inflating, allowance, data) for one in answer.responses for data in one.partitions]


async def _inflated(inflating: Inflating, allowance: Allowance, data: PartitionData) -> PartitionData:
    """Decompress the fetched batches, truncated if they become too large."""
    content = memoryview(data.records or b"")
    turns = Turns()
    made: list[memoryview] = []
    at = size = 0
    while at < len(content) and (size < _ENOUGH_BYTES or not made):
        try:
            header = read_header(content, at)
            batch = content[at : at + header.size]
            made.append(await inflating.uncompressed(batch, header, allowance))
        except ApiError:
            # Batches before the damage are valid; the next read, from here, gets the error.
            if not made:
                raise
            break
        at += header.size
        size += len(made[-1])
        if turns.are_over():
            await asyncio.sleep(0)
    return data if not made else structs.replace(data, records=b"".join(made) if len(made) > 1 else made[0])


def records_in(data: PartitionData, from_offset: int, topic: str = "") -> Iterator[Piece]:
    """The records of a fetch in slices, without those of aborted transactions."""
    partition = data.partition_index
    content = memoryview(data.records or b"")
    aborted = _Aborted(data.aborted_transactions or ())
    at = 0
    found: list[Record] = []
    next_offset = from_offset
    try:
        while at < len(content):
            header = read_header(content, at)
            batch = content[at : at + header.size]
            at += header.size
            if header.is_control:
                aborted.marked(header.producer_id, batch)
            elif not (header.is_transactional and aborted.includes(header.producer_id, header.base_offset)):
                for record in RecordReader(batch, from_offset, topic=topic, partition=partition):
                    found.append(record)
                    if len(found) == _TURN_RECORDS:
                        yield Piece(found, record.offset + 1)
                        found = []
            next_offset = header.next_offset
    except ApiError:
        # Batches before the damage are valid; the next read, from here, gets the error.
        if not found:
            raise
    if found or next_offset > from_offset:
        yield Piece(found, max(next_offset, found[-1].offset + 1) if found else next_offset)


class _Aborted:
    """The aborted transactions at the current position: from their first offset to their marker."""

    def __init__(self, transactions: Sequence[AbortedTransaction]) -> None:
        self._to_come = sorted(transactions, key=lambda one: one.first_offset, reverse=True)
        self._producers: set[int] = set()

    def includes(self, producer_id: int, base_offset: int) -> bool:
        while self._to_come and self._to_come[-1].first_offset <= base_offset:
            self._producers.add(self._to_come.pop().producer_id)
        return producer_id in self._producers

    def marked(self, producer_id: int, batch: memoryview) -> None:
        marker = read_end_marker(batch)
        if marker is not None and not marker.is_commit:
            self._producers.discard(producer_id)
