"""Two brokers without sockets, one of them with the compiled path: what both do must be the same."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import UUID

from hypothesis import strategies as st
from msgspec.structs import replace
from tests.records.making import batch as any_batch
from tests.records.making import record

from ottla.broker.broker import Broker
from ottla.broker.settings import Settings
from ottla.core.clock import ManualClock
from ottla.core.ids import TopicId
from ottla.net.connection import Connection
from ottla.wire.apis import FETCH, PRODUCE
from ottla.wire.codec import encode_request
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ottla.broker.topics import TopicState
    from ottla.net.service import InPlace, Waiting
    from ottla.wire.declare import Sendable

NOW_MS = 1_700_000_000_000
FIRST = bytes(any_batch(record(), base_timestamp=NOW_MS, max_timestamp=NOW_MS))
BY_ID_SINCE = 13
numbers = count(1)


class Wire(asyncio.Transport):
    """The client's end: what was sent to it, and whether it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()
        self.writes = 0
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.writes += 1
        self.sent += data

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        self.is_closed = True

    abort = close


class Counting:
    """The fast path, and how many bytes of requests it has served."""

    def __init__(self, in_place: InPlace) -> None:
        self._in_place = in_place
        self.served = 0

    def serve(self, data: bytearray, size: int, sends_files: bool, /) -> int:  # noqa: FBT001
        served = self._in_place.serve(data, size, sends_files)
        self.served += served
        return served

    def take_answers(self) -> bytes | list[Sendable]:
        return self._in_place.take_answers()

    def take_wait(self) -> Waiting | None:
        return self._in_place.take_wait()


class Side:
    """A broker without a socket."""

    def __init__(self, folder: Path, *, is_fast: bool) -> None:
        config = Settings()
        config = config._replace(broker=replace(config.broker, data_dir=folder), net=replace(config.net, port=0))
        self.broker = Broker(config, ManualClock(NOW_MS))
        [self.port] = self.broker.listener.ports
        self.broker.dispatcher._serve(PRODUCE)
        self.broker.dispatcher._serve(FETCH)
        assert self.port.in_place is not None
        self.counting = Counting(self.port.in_place)
        self.port.in_place = self.counting if is_fast else None

    async def receive(self, *chunks: bytes) -> Wire:
        """Receive these on a new connection."""
        wire = Wire()
        connection = Connection(self.port)
        connection.connection_made(wire)
        for chunk in chunks:
            left = chunk
            while left and not wire.is_closed:
                buffer = connection.get_buffer(-1)
                size = min(len(left), len(buffer))
                buffer[:size] = left[:size]
                connection.buffer_updated(size)
                left = left[size:]
                for _ in range(20):
                    await asyncio.sleep(0)
        connection.connection_lost(None)
        return wire

    def create(self, name: str, partitions: int, **configs: str) -> TopicState:
        """A topic whose partitions have a record, and know producer 77."""
        named = {key.replace("_", "."): value for key, value in configs.items()}
        # The same id on both sides.
        topic_id = TopicId(UUID(bytes=name.encode().ljust(16, b"-")[-16:]))
        state = self.broker.topics.put(self.broker.catalog.create_topic(name, partitions, named, topic_id=topic_id))
        for partition in state.partitions:
            partition.append(bytearray(FIRST))
            partition.append(bytearray(produced(0)))
        return state


def produced(sequence: int, count: int = 1, producer_id: int = 77, epoch: int = 0) -> bytes:
    payload = b"".join(record(offset_delta=delta) for delta in range(count))
    numbers = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
    return bytes(any_batch(payload, count, base_timestamp=NOW_MS, max_timestamp=NOW_MS, **numbers))


def request(state: TopicState, version: int, parts: Sequence[tuple[int, bytes]], acks: int = 1) -> ProduceRequest:
    data = tuple(PartitionProduceData(index=index, records=records) for index, records in parts)
    is_by_id = version >= BY_ID_SINCE
    named = {"topic_id": state.raw_id} if is_by_id else {"name": state.name}
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=(TopicProduceData(partition_data=data, **named),))


def frame(state: TopicState, version: int, parts: Sequence[tuple[int, bytes]], acks: int = 1) -> bytes:
    return b"".join(encode_request(request(state, version, parts, acks), version, 5, "client"))


def state_of(state: TopicState) -> list[object]:
    """Everything that appends change."""
    found: list[object] = []
    for partition in state.partitions:
        log = partition.log
        found += [log.start_offset, log.next_offset, log.is_offline, log.producers.producers]
        found.append(log.segments._first_timestamp)
        for segment in log.segments.all:
            indexes = segment.indexes
            data = segment.path.read_bytes()[: segment.size]
            found += [segment.base_offset, data, indexes.offsets.entries(), indexes.times.entries()]
            found += [indexes._bytes_since_entry, indexes._max_timestamp, indexes._max_timestamp_offset, indexes.room]
    return found


usual = st.builds(
    lambda size, after, count: bytes(
        any_batch(
            b"".join(record(offset_delta=delta, value=bytes(size)) for delta in range(count)),
            count,
            base_timestamp=NOW_MS + after,
            max_timestamp=NOW_MS + after,
        )
    ),
    st.integers(0, 300),
    st.integers(0, 50),
    st.integers(1, 3),
)
configs = st.sampled_from(
    (
        {},
        {},
        {"index_interval_bytes": "100", "segment_index_bytes": "1024"},
        {"index_interval_bytes": "0", "segment_index_bytes": "1024"},
        {"internal_segment_bytes": "1500", "index_interval_bytes": "300"},
        {"segment_ms": "20", "index_interval_bytes": "300"},
        {"max_message_bytes": "300"},
        {"message_timestamp_type": "LogAppendTime"},
        {"compression_type": "zstd"},
        {"cleanup_policy": "compact"},
        {"flush": "ack"},
    )
)


class Consumer:
    """A connection that stays open."""

    def __init__(self, side: Side) -> None:
        self.wire = Wire()
        self.connection = Connection(side.port)
        self.connection.connection_made(self.wire)

    def send(self, data: bytes) -> None:
        buffer = self.connection.get_buffer(-1)
        buffer[: len(data)] = data
        self.connection.buffer_updated(len(data))

    async def turn(self) -> bytes:
        for _ in range(10):
            await asyncio.sleep(0)
        sent, self.wire.sent = bytes(self.wire.sent), bytearray()
        return sent
