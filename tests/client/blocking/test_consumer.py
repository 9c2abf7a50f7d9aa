"""`ottla.Consumer` as scripts and threads use it."""

from __future__ import annotations

import threading
import time
from itertools import islice
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.client.errors import ClientClosed, ConnectFailed
from ottla.client.serializers import decode_json
from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S = 30


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with ottla.Broker() as broker:
        yield broker.bootstrap_servers


def fill(servers: str, topic: str, count: int) -> None:
    with ottla.Producer(servers) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number)


def test_an_interrupted_loop_continues_where_it_stopped(servers: str) -> None:
    fill(servers, "loops", 1200)
    with ottla.Consumer(servers, topics=["loops"], auto_offset_reset="earliest") as consumer:
        first = [record.offset for record in islice(consumer, 700)]
        second = [record.offset for record in islice(consumer, 500)]

    assert first + second == list(range(1200))


def test_poll_returns_available_records_or_nothing_at_the_timeout(servers: str) -> None:
    fill(servers, "polled", 10)
    with ottla.Consumer(servers, topics=["polled"], auto_offset_reset="earliest") as consumer:
        got = consumer.poll(6, timeout_ms=PATIENCE_S * 1000)
        rest = consumer.poll(timeout_ms=PATIENCE_S * 1000)
        start = time.monotonic()
        nothing = consumer.poll(timeout_ms=50)
        waited_s = time.monotonic() - start

    assert [record.value for record in got + rest] == [b"%d" % number for number in range(10)]
    assert len(got) == 6
    assert nothing == []
    assert 0.04 < waited_s < PATIENCE_S


def test_threads_that_share_a_consumer_get_different_records(servers: str) -> None:
    fill(servers, "divided", 4000)
    got: list[list[int]] = [[], []]

    def read(mine: list[int]) -> None:
        for record in consumer:
            mine.append(record.offset)
            if len(got[0]) + len(got[1]) >= 4000:
                consumer_is_done.set()

    consumer_is_done = threading.Event()
    with ottla.Consumer(servers, topics=["divided"], auto_offset_reset="earliest") as consumer:
        threads = [threading.Thread(target=_until_closed, args=(read, mine), daemon=True) for mine in got]
        for thread in threads:
            thread.start()
        assert consumer_is_done.wait(PATIENCE_S)
    for thread in threads:
        thread.join(PATIENCE_S)

    assert sorted(got[0] + got[1]) == list(range(4000))


def _until_closed(read: object, mine: list[int]) -> None:
    with pytest.raises(ClientClosed):
        read(mine)  # type: ignore[operator]


def test_the_caller_can_seek(servers: str) -> None:
    fill(servers, "chosen", 10)
    at = TopicPartition("chosen", 0)
    with ottla.Consumer(servers) as consumer:
        consumer.assign([at])
        consumer.seek(at, 7)
        got = consumer.poll(timeout_ms=PATIENCE_S * 1000)
        where = consumer.position(at), consumer.lag(at), consumer.beginning_offsets(at), consumer.end_offsets(at)
        consumer.seek_to_beginning()
        again = consumer.poll(1, timeout_ms=PATIENCE_S * 1000)

    assert [record.offset for record in got] == [7, 8, 9]
    assert where == (10, 0, {at: 0}, {at: 10})
    assert again[0].offset == 0


def test_a_group_continues_at_its_committed_offset(servers: str) -> None:
    fill(servers, "grouped", 10)
    options = {"topics": ["grouped"], "group": "readers", "auto_offset_reset": "earliest", "auto_commit": False}
    with ottla.Consumer(servers, **options) as consumer:  # type: ignore[arg-type]
        consumer.poll(4, timeout_ms=PATIENCE_S * 1000)
        consumer.commit()
    with ottla.Consumer(servers, **options) as consumer:  # type: ignore[arg-type]
        assert consumer.poll(1, timeout_ms=PATIENCE_S * 1000)[0].offset == 4
        at = TopicPartition("grouped", 0)
        assert consumer.committed(at)[at].offset == 4


def test_columns_and_deserialized_values(servers: str) -> None:
    fill(servers, "columns", 100)
    with ottla.Consumer(servers, topics=["columns"], auto_offset_reset="earliest") as consumer:
        table = consumer.fetch_arrow(timeout_ms=PATIENCE_S * 1000)
    with ottla.Consumer(
        servers, topics=["columns"], auto_offset_reset="earliest", value_deserializer=decode_json
    ) as typed:
        numbers = [record.value for record in typed.poll(100, timeout_ms=PATIENCE_S * 1000)]

    assert table.column("offset").to_pylist() == list(range(100))
    assert numbers == list(range(100))


def test_an_unreachable_broker_is_an_error_at_construction() -> None:
    with pytest.raises(ConnectFailed, match=r"127\.0\.0\.1:1"):
        ottla.Consumer("127.0.0.1:1", topics=["any"])
