"""The compiled path of produce requests: the same responses, files and state as without it."""

from __future__ import annotations

import asyncio
import os
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.records.making import CONTROL, LOG_APPEND_TIME, LZ4, TRANSACTIONAL, ZSTD, record
from tests.records.making import batch as any_batch

from ottla.core.errors import ErrorCode
from ottla.storage.catalog.catalog import edit_keys
from ottla.wire.apis import PRODUCE
from ottla.wire.codec import decode_response, encode_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ottla.broker.topics import TopicState

from .fast_sides import (
    FIRST,
    NOW_MS,
    Side,
    configs,
    frame,
    numbers,
    produced,
    request,
    state_of,
    usual,
)

pytest.importorskip("ottla.broker.fast_path.path", reason="needs a C compiler")


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
    name = f"any-{next(numbers)}"
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


def test_sequencenumbers_that_wrap_around_are_left_to_the_handler(sides: tuple[Side, Side]) -> None:
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
