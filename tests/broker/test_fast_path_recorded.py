"""The compiled path, with inputs of the fuzzing corpus and recorded requests of a client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ottla.wire.apis import FETCH, PRODUCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.net.service import Waiting

from pathlib import Path

import confluent_kafka
from fuzz.targets import repaired

import ottla
from ottla.core.clock import SystemClock

from .fast_sides import (
    FIRST,
    Side,
    frame,
    state_of,
)
from .making import create_topic
from .raw_client import RawClient

pytest.importorskip("ottla.broker.fast_path.path", reason="needs a C compiler")


# The fuzzing corpus, and a recorded client


def inputs_of_the_corpus() -> Iterator[bytes]:
    for target in ("batch", "reader", "columns"):
        for path in sorted((Path(__file__).parents[2] / "fuzz" / "corpus" / target).iterdir()):
            data = path.read_bytes()[1:]
            yield data
            yield bytes(repaired(data))


def test_every_input_of_the_corpus_has_the_same_effects(sides: tuple[Side, Side]) -> None:
    async def run(side: Side) -> list[object]:
        state = side.create("corpus", 1)
        sent = []
        for records in inputs_of_the_corpus():
            wire = await side.receive(frame(state, 9, [(0, records)]) + frame(state, 3, [(0, FIRST)]))
            sent.append((bytes(wire.sent), wire.is_closed))
        return [sent, state_of(state)]

    fast, plain = (asyncio.run(run(side)) for side in sides)
    assert fast == plain


class Recorder:
    """Takes part as the fast path, and only records the requests."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []

    def serve(self, data: bytearray, size: int, sends_files: bool, /) -> int:  # noqa: ARG002, FBT001
        at = 0
        while size - at >= 4 and (end := at + 4 + int.from_bytes(data[at : at + 4])) <= size:
            self.requests.append(bytes(data[at:end]))
            at = end
        return 0

    def take_answers(self) -> bytes:
        raise NotImplementedError

    def take_wait(self) -> Waiting | None:
        raise NotImplementedError


def requests_of_librdkafka(folder: Path) -> list[bytes]:
    """Of producers, idempotent or not, with and without compression, and of a consumer."""
    recorder = Recorder()
    with ottla.Broker(folder) as embedded:
        with RawClient(embedded.bootstrap_servers) as client:
            create_topic(client, "recorded", 3)
        listener = embedded.broker.listener
        listener.serve_in_place = lambda _: None  # type: ignore[method-assign]
        listener.ports[0].in_place = recorder
        where = {"bootstrap.servers": embedded.bootstrap_servers}
        for options in ({}, {"enable.idempotence": True}, {"compression.type": "lz4"}, {"compression.type": "zstd"}):
            producer = confluent_kafka.Producer({**where, "linger.ms": 0, **options})
            for number in range(30):
                producer.produce("recorded", b"%d" % number * 50, partition=number % 3)
                producer.poll(0)
            assert producer.flush(30) == 0
        consumer = confluent_kafka.Consumer({**where, "group.id": "g", "fetch.wait.max.ms": 10})
        consumer.assign([confluent_kafka.TopicPartition("recorded", partition, 0) for partition in range(3)])
        left = 120
        while left:
            left -= len(consumer.consume(left, timeout=30))
        consumer.close()
    return [one for one in recorder.requests if int.from_bytes(one[4:6]) in (PRODUCE.key, FETCH.key)]


def test_recorded_requests_of_librdkafka_get_the_same_responses(sides: tuple[Side, Side], tmp_path: Path) -> None:
    requests = requests_of_librdkafka(tmp_path)
    sides[0].counting.served = 0

    async def run(side: Side) -> list[object]:
        # As large as the recorded one, and with a clock that accepts its timestamps.
        state = side.create("recorded", 3)
        for partition in state.partitions:
            partition.log._clock = SystemClock()
        sent = [bytes((await side.receive(one)).sent) for one in requests]
        return [sent, state_of(state)]

    fast, plain = (asyncio.run(run(side)) for side in sides)
    assert fast == plain
    assert sides[0].counting.served > 0
