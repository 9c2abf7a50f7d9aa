"""Delayed messages: they do not block others, and are delivered when they are due."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import given

from ottla import Consumer, Producer, TopicPartition
from ottla.dmqp.frame import Status
from ottla.dmqp.left_behind import LeftBehind, parse
from ottla.dmqp.shard_log import ShardLog

from .serving import DmqpBroker, RawShard

if TYPE_CHECKING:
    from pathlib import Path

NOW_MS = time.time_ns() // 1_000_000
HOUR_MS = 3_600_000


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = NOW_MS
        monkeypatch.setattr(ShardLog, "now_ms", lambda _: self.now_ms)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def send(served: DmqpBroker, topic: str, *messages: tuple[bytes, int]) -> None:
    """Push messages, each with its delay in hours."""
    with Producer(served.servers) as producer:
        for value, hours in messages:
            headers = [("ottla-deliver-at", str(NOW_MS + hours * HOUR_MS).encode())] if hours else []
            producer.send(topic, value, headers=headers).result()


def pop_all(shard: RawShard) -> list[bytes]:
    got = []
    while (reply := shard.pop()).status == Status.OK:
        got.append(reply.payload)
    assert reply.status == Status.ENODATA
    return got


def test_a_message_is_delivered_when_due_and_others_do_not_wait_for_it(
    served: DmqpBroker, topic: str, clock: Clock
) -> None:
    [port] = served.exposed(topic)
    send(served, topic, (b"tomorrow", 24), (b"in 2 hours", 2), (b"now", 0), (b"in an hour", 1), (b"now too", 0))
    with RawShard(port) as shard:
        assert pop_all(shard) == [b"now", b"now too"]
        clock.now_ms += 3 * HOUR_MS
        send(served, topic, (b"late", 0))
        assert shard.peek().status == Status.OK
        assert pop_all(shard) == [b"in an hour", b"in 2 hours", b"late"]
        clock.now_ms += 24 * HOUR_MS
        assert pop_all(shard) == [b"tomorrow"]


def test_kafka_consumers_see_delayed_messages_at_once(served: DmqpBroker, topic: str, clock: Clock) -> None:
    del clock
    served.exposed(topic)
    send(served, topic, (b"tomorrow", 24))
    with Consumer(served.servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        [record] = consumer.poll(timeout_ms=5000)
        assert record.value == b"tomorrow"


def test_skipped_delayed_messages_are_remembered(tmp_path: Path, clock: Clock) -> None:
    with DmqpBroker(tmp_path) as served:
        [port] = served.exposed("jobs")
        send(served, "jobs", (b"1", 1), (b"2", 2), (b"now", 0), (b"3", 3), (b"now too", 0))
        with RawShard(port) as shard:
            assert pop_all(shard) == [b"now", b"now too"]
            clock.now_ms += HOUR_MS
            assert pop_all(shard) == [b"1"]
    with DmqpBroker(tmp_path) as served:
        [port] = [shard["port"] for shard in served.client.get("/v1/dmqp/jobs").json()["shards"]]
        with RawShard(port) as shard:
            assert pop_all(shard) == []
            clock.now_ms += 3 * HOUR_MS
            assert pop_all(shard) == [b"2", b"3"]


def test_an_invalid_delivery_time_means_now(served: DmqpBroker, topic: str) -> None:
    [port] = served.exposed(topic)
    with Producer(served.servers) as producer:
        producer.send(topic, b"x", headers=[("ottla-deliver-at", b"soon")]).result()
    with RawShard(port) as shard:
        assert pop_all(shard) == [b"x"]


# The list of skipped ranges beside the cursor


@given(st.sets(st.integers(0, 60)), st.sets(st.integers(0, 60)), st.integers(0, 1 << 40))
def test_the_list_round_trips(offsets: set[int], taken: set[int], sequence: int) -> None:
    left = LeftBehind()
    for offset in sorted(offsets):
        grown = left.with_next(offset)
        assert grown is not None
        left = grown
    for offset in taken:
        left = left.without(offset)
    assert sorted(left) == sorted(offsets - taken)
    assert parse(left.text(sequence)) == (sequence, left)
    assert sorted(left.since(30)) == sorted(each for each in offsets - taken if each >= 30)
    assert sorted(left.until(30)) == sorted(each for each in offsets - taken if each < 30)


def test_some_hundred_ranges_fit() -> None:
    left, offset = LeftBehind(), 10_000_000
    while (grown := left.with_next(offset)) is not None:
        left, offset = grown, offset + 10
    assert 500 < len(list(left)) < 4000
    assert len(left.text(1 << 40)) < 4096


@pytest.mark.parametrize("text", ["", "note", "-1", "3 x+1"])
def test_foreign_metadata_is_not_a_list(text: str) -> None:
    assert parse(text) == (3 if text.startswith("3") else 0, LeftBehind())
