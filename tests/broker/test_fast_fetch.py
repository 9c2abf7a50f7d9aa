"""The compiled path of fetch requests: the same responses as without it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.records.making import TRANSACTIONAL, record
from tests.records.making import batch as any_batch

from ottla.core.errors import ApiError, ErrorCode
from ottla.records.control import EndMarker
from ottla.wire.apis import FETCH
from ottla.wire.codec import decode_response, encode_request
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.broker.partition import Partition
    from ottla.broker.topics import TopicState

from .fast_sides import (
    BY_ID_SINCE,
    FIRST,
    NOW_MS,
    Consumer,
    Side,
    configs,
    frame,
    numbers,
    usual,
)

pytest.importorskip("ottla.broker.fast_path.path", reason="needs a C compiler")


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
    name = f"fetched-{next(numbers)}"

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


def test_a_waiting_fetch_is_not_answered_on_a_connection_that_is_closing(fast: Side) -> None:
    """A real transport raises an error then."""

    async def exchange() -> None:
        state = fast.create("closing", 1)
        consumer = Consumer(fast)
        consumer.send(at_the_end(state, 0))
        consumer.wire.close()
        state.partitions[0].append(bytearray(FIRST))
        assert await consumer.turn() == b""
        assert not consumer.connection.is_busy

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
