"""The compiled path of produce and fetch requests: the same responses, files and state as without it."""

from __future__ import annotations

import asyncio
import os
import resource
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.records.making import CONTROL, LOG_APPEND_TIME, LZ4, TRANSACTIONAL, ZSTD, record
from tests.records.making import batch as any_batch

from ottla.broker.broker import Broker
from ottla.broker.settings import Settings
from ottla.core.clock import ManualClock
from ottla.core.errors import ApiError, ErrorCode
from ottla.core.ids import TopicId
from ottla.net.connection import Connection
from ottla.records.control import EndMarker
from ottla.storage.catalog.catalog import edit_keys
from ottla.wire.apis import FETCH, PRODUCE
from ottla.wire.codec import decode_response, encode_request
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ottla.broker.partition import Partition
    from ottla.broker.topics import TopicState
    from ottla.net.connection import InPlace, Waiting

pytest.importorskip("ottla.broker.fast_path.path", reason="needs a C compiler")

NOW_MS = 1_700_000_000_000
FIRST = bytes(any_batch(record(), base_timestamp=NOW_MS, max_timestamp=NOW_MS))
BY_ID_SINCE = 13
_numbers = count(1)


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

    def serve(self, data: bytearray, size: int, /) -> int:
        served = self._in_place.serve(data, size)
        self.served += served
        return served

    def take_answers(self) -> bytes:
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


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    fast, plain = (Side(tmp_path_factory.mktemp(name), is_fast=name == "fast") for name in ("fast", "plain"))
    yield fast, plain
    for side in (fast, plain):
        side.broker.close()


@pytest.fixture
def fast(sides: tuple[Side, Side]) -> Side:
    sides[0].counting.served = 0
    return sides[0]


class Step(NamedTuple):
    """A request, made for each side: topic ids differ."""

    version: int
    acks: int
    parts: list[tuple[int, bytes]]
    change: tuple[int, int] | None
    """A position and what is put there, if the request is damaged."""

    def frame(self, state: TopicState) -> bytes:
        made = bytearray(frame(state, self.version, self.parts, self.acks))
        if self.change is not None:
            place, value = self.change
            made[4 + place % (len(made) - 4)] ^= value
        return bytes(made)


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
odd = st.builds(
    lambda fields: bytes(any_batch(record(), **({"base_timestamp": NOW_MS, "max_timestamp": NOW_MS} | fields))),
    st.sampled_from(
        [
            {"attributes": CONTROL},
            {"attributes": LOG_APPEND_TIME},
            {"attributes": TRANSACTIONAL},
            {"attributes": TRANSACTIONAL, "producer_id": 77, "producer_epoch": 0, "base_sequence": 1},
            {"attributes": LZ4},
            {"attributes": ZSTD},
            {"attributes": 7},
            {"record_count": 0},
            {"record_count": 2},
            {"record_count": 2, "last_offset_delta": 1},
            {"last_offset_delta": -1},
            {"base_offset": -1},
            {"base_offset": 7},
            {"magic": 1},
            {"batch_length": 500},
            {"batch_length": 5},
            {"max_timestamp": -1},
            {"max_timestamp": NOW_MS + (1 << 40)},
            {"base_timestamp": -1},
            {"producer_id": 5},
            {"producer_id": 77, "producer_epoch": 0, "base_sequence": -1},
        ]
    ),
)
of_producers = st.builds(
    produced, st.integers(0, 8), st.integers(1, 3), st.sampled_from((77, 77, 77, 78)), st.sampled_from((0, 0, 0, 1))
)
broken = st.sampled_from((b"", b"\0", FIRST[:60], FIRST[:-1], FIRST + FIRST, FIRST[:-1] + b"x"))
batches = st.one_of(usual, usual, usual, of_producers, of_producers, odd, broken)
steps = st.builds(
    Step,
    st.integers(PRODUCE.first, PRODUCE.last),
    st.sampled_from((1, 1, 1, -1, -1, 0, 2)),
    st.lists(st.tuples(st.sampled_from((0, 0, 0, 1, 2, 9)), batches), min_size=1, max_size=3),
    st.none() | st.none() | st.none() | st.tuples(st.integers(0, 400), st.integers(1, 255)),
)
ordinary_steps = st.builds(
    Step,
    st.integers(PRODUCE.first, PRODUCE.last),
    st.sampled_from((1, -1, 0)),
    st.lists(st.tuples(st.integers(0, 2), usual), min_size=1, max_size=2),
    st.none(),
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


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    chunks = []
    for size in sizes:
        chunks.append(data[:size])
        data = data[size:]
    return [*chunks, data]


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(st.one_of(*[ordinary_steps] * 6, steps), min_size=1, max_size=40),
    cuts=st.lists(st.integers(1, 3000), max_size=30),
    configs=configs,
)
def test_any_requests_have_the_same_effects_with_and_without_it(
    sides: tuple[Side, Side], steps: list[Step], cuts: list[int], configs: dict[str, str]
) -> None:
    name = f"any-{next(_numbers)}"
    outcomes = []
    for side in sides:
        state = side.create(name, 3, **configs)
        before = list(side.broker.dispatcher.stats[0].errors.items())
        data = b"".join(step.frame(state) for step in steps)
        wire = asyncio.run(side.receive(*cut(data, cuts)))
        sent = bytes(wire.sent)
        outcomes.append((sent, wire.is_closed, state_of(state), before))
        side.broker.topics.delete(state)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("version", range(PRODUCE.first, PRODUCE.last + 1))
@pytest.mark.parametrize("acks", [1, -1])
def test_usual_requests_are_served_without_leaving_the_receive_buffer(fast: Side, version: int, acks: int) -> None:
    state = fast.create(f"usual-{version}-{acks}", 2)
    asked = request(state, version, [(0, FIRST), (1, FIRST)], acks)
    data = b"".join(encode_request(asked, version, 5, "client"))

    wire = asyncio.run(fast.receive(data * 3))

    assert fast.counting.served == 3 * len(data)
    assert wire.writes == 1
    size = int.from_bytes(wire.sent[:4])
    assert len(wire.sent) == 3 * (4 + size)
    [answer] = decode_response(asked, version, 5, memoryview(wire.sent)[4 : 4 + size]).responses
    assert [(part.index, part.error_code, part.base_offset) for part in answer.partition_responses] == [
        (0, 0, 2),
        (1, 0, 2),
    ]
    assert [partition.log.next_offset for partition in state.partitions] == [5, 5]


def test_the_batches_of_an_idempotent_producer_are_served_in_place_and_duplicates_are_recognised(fast: Side) -> None:
    state = fast.create("idempotent", 1)
    data = b"".join(frame(state, 9, [(0, produced(sequence))]) for sequence in range(1, 9))

    asyncio.run(fast.receive(data))
    assert fast.counting.served == len(data)
    again = asyncio.run(fast.receive(frame(state, 9, [(0, produced(8))])))

    asked = request(state, 9, [])
    [answer] = decode_response(asked, 9, 5, memoryview(again.sent)[4:]).responses
    assert answer.partition_responses[0].base_offset == 9
    assert state.partitions[0].log.next_offset == 10


def test_sequence_numbers_that_wrap_around_are_left_to_the_handler(sides: tuple[Side, Side]) -> None:
    highest = (1 << 31) - 1
    outcomes = []
    for side in sides:
        state = side.create("wrapping", 1)
        log = state.partitions[0].log
        known = log.producers.producers[77].batches[-1]
        log.producers.producers[77].batches.append(known._replace(base_sequence=3, last_sequence=highest - 1))
        data = b"".join(frame(state, 9, [(0, produced(sequence))]) for sequence in (highest, 0, 1, 2, 3))
        outcomes.append((bytes(asyncio.run(side.receive(data)).sent), state_of(state)))
    assert outcomes[0] == outcomes[1]


def test_a_write_that_fails_is_reported_by_the_handler_and_nothing_is_acknowledged(fast: Side) -> None:
    state = fast.create("failing", 2)
    log = state.partitions[1].log
    active = log.segments.active
    active.release()
    active._fd = os.open(active.path, os.O_RDONLY)
    data = frame(state, 9, [(0, FIRST), (1, FIRST)])

    wire = asyncio.run(fast.receive(data * 2))

    assert fast.counting.served == 0
    results = []
    left = memoryview(wire.sent)
    while left:
        size = int.from_bytes(left[:4])
        [answer] = decode_response(request(state, 9, []), 9, 5, left[4 : 4 + size]).responses
        results.append([(part.error_code, part.base_offset) for part in answer.partition_responses])
        left = left[4 + size :]
    refused = (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    assert results == [[(0, 2), refused], [(0, 3), refused]]
    assert [partition.log.next_offset for partition in state.partitions] == [4, 2]
    assert log.is_offline


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_where_a_run_does_not_fit_on_the_disk_the_batches_that_do_are_kept(sides: tuple[Side, Side]) -> None:
    outcomes = []
    for side in sides:
        state = side.create("full", 1)
        size = state.partitions[0].log.size
        data = frame(state, 9, [(0, FIRST)]) * 5
        with files_of_at_most(size + 2 * len(FIRST) + 10):
            sent = bytes(asyncio.run(side.receive(data)).sent)
        after = bytes(asyncio.run(side.receive(data)).sent)
        outcomes.append((sent, after, state_of(state)))
        assert state.partitions[0].log.next_offset == 2 + 2 + 5
    assert outcomes[0] == outcomes[1]


def test_requests_are_counted(sides: tuple[Side, Side]) -> None:
    counted = []
    for side in sides:
        state = side.create("counted", 1)
        [stats] = [one for one in side.broker.dispatcher.stats if one.name == "Produce"]
        before = stats.count, stats.bytes_in, stats.bytes_out, stats.total_ns
        asyncio.run(side.receive(frame(state, 9, [(0, FIRST)]) * 7))
        after = stats.count, stats.bytes_in, stats.bytes_out
        assert stats.total_ns > before[3]
        counted.append([new - old for new, old in zip(after, before, strict=False)])
    assert counted[0] == counted[1]
    assert counted[0][0] == 7


def test_other_requests_among_them_are_answered_in_order(sides: tuple[Side, Side]) -> None:
    outcomes = []
    for side in sides:
        state = side.create("ordered", 1)
        usual, bad = frame(state, 9, [(0, FIRST)]), frame(state, 3, [(0, FIRST[:-1] + b"x")])
        outcomes.append(bytes(asyncio.run(side.receive((usual * 2 + bad) * 3 + usual)).sent))
    assert outcomes[0] == outcomes[1]


def test_every_request_passes_the_wrappers_of_the_handler(tmp_path: Path) -> None:
    side = Side(tmp_path, is_fast=True)
    seen: list[object] = []
    dispatcher = side.broker.dispatcher

    def around(_: object, handler: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any) -> Any:
            seen.append(args)
            return handler(*args)

        return watched

    state = side.create("wrapped", 1)
    dispatcher.around = around
    dispatcher.reload_handlers()
    asyncio.run(side.receive(frame(state, 9, [(0, FIRST)]) * 2))
    assert len(seen) == 2
    dispatcher.around = None
    dispatcher.reload_handlers()
    asyncio.run(side.receive(frame(state, 9, [(0, FIRST)]) * 2))
    assert len(seen) == 2
    assert state.partitions[0].log.next_offset == 6
    side.broker.close()


def test_a_changed_config_is_used_at_once(fast: Side) -> None:
    state = fast.create("changed", 1)
    data = frame(state, 9, [(0, FIRST)])
    asyncio.run(fast.receive(data))
    assert fast.counting.served == len(data)

    fast.broker.topics.configure(state, edit_keys({"max.message.bytes": "10"}))

    sent = asyncio.run(fast.receive(data)).sent
    [answer] = decode_response(request(state, 9, []), 9, 5, memoryview(sent)[4:]).responses
    assert answer.partition_responses[0].error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert fast.counting.served == len(data)


def test_a_deleted_topic_is_unknown_at_once(fast: Side) -> None:
    state = fast.create("deleted", 1)
    data = frame(state, 9, [(0, FIRST)])
    asyncio.run(fast.receive(data))
    fast.broker.topics.delete(state)

    sent = asyncio.run(fast.receive(data)).sent

    [answer] = decode_response(request(state, 9, []), 9, 5, memoryview(sent)[4:]).responses
    assert answer.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# Fetches


class Want(NamedTuple):
    partition: int
    back: int | None
    """How far before the end of the log; None for the start."""
    most_bytes: int = 1 << 20
    leader_epoch: int = -1
    last_epoch: int = -1


class FetchStep(NamedTuple):
    version: int
    isolation_level: int
    wants: list[Want]
    min_bytes: int
    max_bytes: int
    change: tuple[int, int] | None


def fetch_request(state: TopicState, version: int, offsets: Sequence[tuple[Want, int]], **fields: int) -> FetchRequest:
    data = tuple(
        FetchPartition(
            partition=want.partition,
            current_leader_epoch=want.leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=want.last_epoch,
            partition_max_bytes=want.most_bytes,
        )
        for want, offset in offsets
    )
    named = FetchTopic(topic=state.name, partitions=data)
    if version >= BY_ID_SINCE:
        named = FetchTopic(topic_id=state.raw_id, partitions=data)
    return FetchRequest(**({"max_wait_ms": 0, "min_bytes": 1} | fields), topics=(named,))  # type: ignore[arg-type]


def fetch_frame(state: TopicState, step: FetchStep, read: dict[int, int]) -> bytes:
    offsets = []
    for want in step.wants:
        log = state.partitions[want.partition].log
        offset = read.get(want.partition, 0) if want.back is None else max(log.next_offset - want.back, 0)
        offsets.append((want, offset))
        read[want.partition] = log.next_offset
    fields = {"isolation_level": step.isolation_level, "min_bytes": step.min_bytes, "max_bytes": step.max_bytes}
    asked = fetch_request(state, step.version, offsets, **fields)
    made = bytearray(b"".join(encode_request(asked, step.version, 5, "client")))
    if step.change is not None:
        made[4 + step.change[0] % (len(made) - 4)] ^= step.change[1]
    return bytes(made)


wants = st.builds(
    Want,
    st.integers(0, 2),
    st.none() | st.none() | st.integers(-1, 4),
    st.sampled_from((1 << 20, 1 << 20, 200, 0, -1)),
    st.sampled_from((-1, -1, 0, 1)),
    st.sampled_from((-1, -1, 0, 1)),
)
usual_wants = st.integers(0, 2).map(lambda partition: Want(partition, None))
fetch_steps = st.builds(
    FetchStep,
    st.integers(FETCH.first, FETCH.last),
    st.sampled_from((0, 1)),
    st.lists(st.one_of(usual_wants, usual_wants, usual_wants, wants), min_size=1, max_size=3),
    st.sampled_from((0, 1, 100_000)),
    st.sampled_from((50 << 20, 50 << 20, 300, 0)),
    st.none() | st.none() | st.none() | st.none() | st.tuples(st.integers(0, 200), st.integers(1, 255)),
)
appends = st.tuples(st.integers(0, 2), st.one_of(usual, usual, st.just(b"roll"), st.just(b"transaction")))


@settings(max_examples=100, deadline=None)
@given(steps=st.lists(st.one_of(appends, appends, fetch_steps), min_size=2, max_size=25), configs=configs)
def test_any_fetches_get_the_same_responses_with_and_without_it(
    sides: tuple[Side, Side], steps: list[tuple[int, bytes] | FetchStep], configs: dict[str, str]
) -> None:
    name = f"fetched-{next(_numbers)}"

    async def run(side: Side) -> list[tuple[bytes, bool]]:
        state = side.create(name, 3, **configs)
        read: dict[int, int] = {}
        sent: list[tuple[bytes, bool]] = []
        for step in steps:
            if isinstance(step, FetchStep):
                wire = await side.receive(fetch_frame(state, step, read))
                sent.append((bytes(wire.sent), wire.is_closed))
            else:
                append(state.partitions[step[0]], step[1])
        side.broker.topics.delete(state)
        return sent

    fast, plain = (asyncio.run(run(side)) for side in sides)
    assert fast == plain


def append(partition: Partition, what: bytes) -> None:
    if what == b"roll":
        partition.log.roll()
    elif what == b"transaction":
        numbers = {"producer_id": 99, "producer_epoch": 0, "base_sequence": 0, "attributes": TRANSACTIONAL}
        producer = partition.log.producers.producers.get(99)
        if producer is not None and producer.transaction_start >= 0:
            partition.append_end_marker((99, 0), EndMarker(is_commit=False, coordinator_epoch=0))
        elif producer is None:
            partition.append(any_batch(record(), base_timestamp=NOW_MS, max_timestamp=NOW_MS, **numbers))
    else:
        with suppress(ApiError):
            partition.append(bytearray(what))


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


def at_the_end(state: TopicState, *partitions: int, version: int = 12, **fields: int) -> bytes:
    offsets = [(Want(partition, 0), state.partitions[partition].log.next_offset) for partition in partitions]
    asked = fetch_request(state, version, offsets, **({"max_wait_ms": 60_000} | fields))
    return b"".join(encode_request(asked, version, 5, "client"))


@pytest.mark.parametrize("version", range(FETCH.first, FETCH.last + 1))
@pytest.mark.parametrize("isolation_level", [0, 1])
def test_a_waiting_fetch_is_answered_in_place_after_an_append(
    sides: tuple[Side, Side], version: int, isolation_level: int
) -> None:
    async def exchange(side: Side) -> list[bytes]:
        state = side.create(f"waiting-{version}-{isolation_level}", 2)
        for partition in state.partitions:
            partition.log.aborted_transactions(0, 1)  # loads the index
        consumer, producer = Consumer(side), Consumer(side)
        answers = []
        for _ in range(3):
            consumer.send(at_the_end(state, 0, 1, version=version, isolation_level=isolation_level))
            assert await consumer.turn() == b""
            producer.send(frame(state, 9, [(1, FIRST)]))
            await producer.turn()
            answers.append(await consumer.turn())
            assert FIRST[61:] in answers[-1]
        assert not consumer.connection.is_busy
        return answers

    fast, plain = (asyncio.run(exchange(side)) for side in sides)
    assert fast == plain


def test_a_waiting_fetch_waits_for_min_bytes_and_answers_at_its_timeout(fast: Side) -> None:
    async def exchange() -> None:
        state = fast.create("min-bytes", 1)
        consumer = Consumer(fast)
        consumer.send(at_the_end(state, 0, min_bytes=2 * len(FIRST)))
        state.partitions[0].append(bytearray(FIRST))
        assert await consumer.turn() == b""
        state.partitions[0].append(bytearray(FIRST))
        assert (await consumer.turn()).count(FIRST[61:]) == 2
        consumer.send(at_the_end(state, 0, max_wait_ms=1, min_bytes=2 * len(FIRST)))
        state.partitions[0].append(bytearray(FIRST))
        await asyncio.sleep(0.002)
        sent = await consumer.turn()
        assert sent.count(FIRST[61:]) == 1
        assert not state.partitions[0].waits

    asyncio.run(exchange())


def test_requests_behind_a_waiting_fetch_are_answered_after_it(fast: Side) -> None:
    async def exchange() -> None:
        state = fast.create("behind", 1)
        consumer = Consumer(fast)
        consumer.send(at_the_end(state, 0) + frame(state, 9, [(0, FIRST)]))
        assert await consumer.turn() == b""
        state.partitions[0].append(bytearray(FIRST))
        sent = await consumer.turn()
        assert FIRST[61:] in sent
        assert state.partitions[0].log.next_offset == 4
        size = 4 + int.from_bytes(sent[:4])
        assert len(sent) == size + 4 + int.from_bytes(sent[size : size + 4])

    asyncio.run(exchange())


def test_a_waiting_fetch_of_a_deleted_topic_gets_an_error(fast: Side) -> None:
    async def exchange() -> None:
        state = fast.create("vanished", 1)
        consumer = Consumer(fast)
        consumer.send(at_the_end(state, 0, version=12))
        fast.broker.topics.delete(state)
        sent = memoryview(await consumer.turn())[4:]
        asked = fetch_request(state, 12, [])
        [topic] = decode_response(asked, 12, 5, sent).responses
        assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    asyncio.run(exchange())


def test_nothing_is_left_of_a_waiting_fetch_when_its_client_is_gone(fast: Side) -> None:
    async def exchange() -> None:
        state = fast.create("gone", 1)
        consumer = Consumer(fast)
        consumer.send(at_the_end(state, 0))
        assert state.partitions[0].waits
        consumer.connection.connection_lost(None)
        assert await consumer.turn() == b""
        assert not state.partitions[0].waits
        state.partitions[0].append(bytearray(FIRST))
        assert await consumer.turn() == b""

    asyncio.run(exchange())
