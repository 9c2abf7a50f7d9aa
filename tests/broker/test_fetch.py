"""Fetch in every version: how much, from where, and waiting for more without polling."""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pytest
from tests.records.making import TRANSACTIONAL, record
from tests.records.making import batch as any_batch

import ottla
from ottla.broker.context import Context
from ottla.broker.handlers import fetch as handlers
from ottla.broker.settings import Settings
from ottla.core.errors import ErrorCode
from ottla.records.control import EndMarker
from ottla.records.reader import RecordReader
from ottla.wire.apis import FETCH
from ottla.wire.header import RequestHeader
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData

from .making import ask_until, batch, create_topic, delete_topic, produce, send_batch
from .raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Iterator
    from pathlib import Path

    from ottla.broker.partition import Partition

VERSIONS = range(FETCH.first, FETCH.last + 1)
EACH_VERSION = pytest.mark.parametrize("version", VERSIONS)
BY_ID_SINCE = 13
MIB = 1 << 20
LONG_MS = 30_000

T = TypeVar("T")


class Topic(NamedTuple):
    name: str
    id: bytes


@pytest.fixture
def made(client: RawClient, name: str) -> Topic:
    """A topic with three partitions."""
    return Topic(name, create_topic(client, name, partitions=3))


@pytest.fixture(scope="module")
def filled(broker: ottla.Broker) -> Topic:
    """Five batches of two records of about a kilobyte in partition 0, one small record in each of the others."""
    with RawClient(broker.bootstrap_servers) as client:
        topic = Topic("filled", create_topic(client, "filled", partitions=3))
        for number in range(5):
            produce(client, "filled", b"%d" % (2 * number) * 1000, b"%d" % (2 * number + 1) * 1000)
        produce(client, "filled", b"one", partition=1)
        produce(client, "filled", b"two", partition=2)
    return topic


def wanted(offset: int = 0, partition: int = 0, **more: int) -> FetchPartition:
    return FetchPartition(**{"partition": partition, "fetch_offset": offset, "partition_max_bytes": MIB} | more)


def request(topic: Topic, parts: Iterable[FetchPartition], version: int, **more: int) -> FetchRequest:
    partitions = tuple(parts)
    named = (
        FetchTopic(topic_id=topic.id, partitions=partitions)
        if version >= BY_ID_SINCE
        else FetchTopic(topic=topic.name, partitions=partitions)
    )
    return FetchRequest(**{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 50 * MIB} | more, topics=(named,))


def fetch(
    client: RawClient, topic: Topic, *parts: FetchPartition, version: int = FETCH.last, **more: int
) -> list[PartitionData]:
    answer = client.ask(request(topic, parts, version, **more), version)
    assert (answer.error_code, answer.session_id) == (0, 0)
    [answered] = answer.responses
    assert (answered.topic, answered.topic_id) == (
        ("", topic.id) if version >= BY_ID_SINCE else (topic.name, bytes(16))
    )
    return list(answered.partitions)


def offsets(data: PartitionData) -> list[int]:
    return [each.offset for each in RecordReader(bytes(data.records or b""))]


# What comes


@EACH_VERSION
def test_records_come_as_they_were_sent(client: RawClient, filled: Topic, version: int) -> None:
    [data] = fetch(client, filled, wanted(), version=version)
    assert (data.error_code, data.partition_index, data.high_watermark) == (ErrorCode.NONE, 0, 10)
    assert data.last_stable_offset == 10
    assert data.log_start_offset == (0 if version >= 5 else -1)
    assert data.preferred_read_replica == -1
    assert data.aborted_transactions is None
    values = [each.value for each in RecordReader(bytes(data.records or b""))]
    assert values == [b"%d" % number * 1000 for number in range(10)]


@EACH_VERSION
def test_the_end_of_the_log_is_a_place_to_read_from_and_there_is_nothing(
    client: RawClient, filled: Topic, version: int
) -> None:
    [data] = fetch(client, filled, wanted(10), version=version)
    assert (data.error_code, data.high_watermark, data.records) == (ErrorCode.NONE, 10, b"")


@EACH_VERSION
def test_a_fetch_from_the_middle_of_a_batch_gets_the_whole_batch(
    client: RawClient, filled: Topic, version: int
) -> None:
    [data] = fetch(client, filled, wanted(3), version=version)
    assert offsets(data) == [2, 3, 4, 5, 6, 7, 8, 9]


@EACH_VERSION
@pytest.mark.parametrize("offset", [11, -1, -2, (1 << 63) - 1, -(1 << 63)])
def test_offsets_below_the_start_and_past_the_end_are_out_of_range(
    client: RawClient, filled: Topic, version: int, offset: int
) -> None:
    bad, good = fetch(client, filled, wanted(offset), wanted(partition=1), version=version, max_wait_ms=LONG_MS)
    assert (bad.error_code, bad.high_watermark, bad.records) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1, b"")
    assert (good.error_code, offsets(good)) == (ErrorCode.NONE, [0])


def test_what_was_deleted_is_out_of_range(client: RawClient, made: Topic) -> None:
    produce(client, made.name, b"a", b"b", b"c")
    doomed = DeleteRecordsPartition(partition_index=0, offset=2)
    client.ask(
        DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=made.name, partitions=(doomed,)),), timeout_ms=1000)
    )
    assert fetch(client, made, wanted(1))[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    [data] = fetch(client, made, wanted(2))
    assert (data.error_code, data.log_start_offset, offsets(data)) == (ErrorCode.NONE, 2, [0, 1, 2])


@EACH_VERSION
def test_partitions_and_topics_that_do_not_exist(client: RawClient, filled: Topic, version: int) -> None:
    bad, worse, good = fetch(
        client, filled, wanted(partition=3), wanted(partition=-1), wanted(partition=1), version=version
    )
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (bad.error_code, worse.error_code, good.error_code) == (unknown, unknown, ErrorCode.NONE)
    [data] = fetch(client, Topic("no-such-topic", secrets.token_bytes(16)), wanted(), version=version)
    assert data.error_code == (ErrorCode.UNKNOWN_TOPIC_ID if version >= BY_ID_SINCE else unknown)
    [data] = fetch(client, Topic("", bytes(16)), wanted(), version=version)
    assert data.error_code == (ErrorCode.UNKNOWN_TOPIC_ID if version >= BY_ID_SINCE else unknown)


@EACH_VERSION
def test_a_fetch_of_nothing_is_answered_at_once(client: RawClient, version: int) -> None:
    answer = client.ask(FetchRequest(max_wait_ms=LONG_MS, min_bytes=1, topics=()), version)
    assert answer.responses == ()


# How much comes


@EACH_VERSION
def test_a_partitions_limit_takes_whole_batches(client: RawClient, filled: Topic, version: int) -> None:
    [data] = fetch(client, filled, wanted(partition_max_bytes=5000), version=version)
    assert offsets(data) == [0, 1, 2, 3]


@EACH_VERSION
@pytest.mark.parametrize("limit", [1, 0, -1, -(2**31)])
def test_the_first_batch_comes_however_large_it_is(client: RawClient, filled: Topic, version: int, limit: int) -> None:
    first, second, third = fetch(
        client,
        filled,
        wanted(4, partition_max_bytes=limit),
        wanted(partition=1, partition_max_bytes=limit),
        wanted(partition=2),
        version=version,
    )
    assert (offsets(first), offsets(second), offsets(third)) == ([4, 5], [], [0])
    first, second, third = fetch(
        client, filled, wanted(4), wanted(partition=1), wanted(partition=2), version=version, max_bytes=limit
    )
    assert (offsets(first), offsets(second), offsets(third)) == ([4, 5], [], [])


@EACH_VERSION
def test_the_first_that_has_something_is_the_first(client: RawClient, filled: Topic, version: int) -> None:
    parts = (wanted(10), wanted(99, partition=1), wanted(partition=2, partition_max_bytes=1))
    answers = fetch(client, filled, *parts, version=version)
    assert [offsets(data) for data in answers] == [[], [], [0]]


@EACH_VERSION
def test_the_limit_of_the_answer_is_shared_by_its_partitions(client: RawClient, filled: Topic, version: int) -> None:
    small, large, other = fetch(
        client, filled, wanted(partition=1), wanted(), wanted(partition=2), version=version, max_bytes=4500
    )
    assert (offsets(small), offsets(large), offsets(other)) == ([0], [0, 1, 2, 3], [0])
    # What is no longer read from is still checked.
    _, _, bad = fetch(client, filled, wanted(), wanted(), wanted(99, partition=2), version=version, max_bytes=1)
    assert bad.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_broker_has_a_limit_too(tmp_path: Path) -> None:
    settings = Settings()
    settings = settings._replace(
        net=replace(settings.net, port=0), broker=replace(settings.broker, fetch_max_bytes=2500)
    )
    with ottla.Broker(tmp_path, settings) as broker, RawClient(broker.bootstrap_servers) as client:
        topic = Topic("t", create_topic(client, "t"))
        for _ in range(5):
            produce(client, "t", bytes(1000))
        assert offsets(fetch(client, topic, wanted())[0]) == [0, 1]


def test_answers_shrink_when_much_is_held_for_slow_readers(tmp_path: Path) -> None:
    settings = Settings()
    settings = settings._replace(net=replace(settings.net, port=0, max_held_bytes=40_000))
    with ottla.Broker(tmp_path, settings) as broker, RawClient(broker.bootstrap_servers) as client:
        topic = Topic("t", create_topic(client, "t"))
        for _ in range(50):
            produce(client, "t", bytes(1000))
        assert len(fetch(client, topic, wanted())[0].records or b"") < 10_000


# Waiting


def partition_of(broker: ottla.Broker, topic: Topic, index: int = 0) -> Partition:
    return broker.broker.topics.by_name[topic.name].partitions[index]


def in_the_loop(broker: ottla.Broker, work: Coroutine[Any, Any, T]) -> T:
    """Do something that belongs to the broker's loop."""
    assert broker._loop is not None
    return asyncio.run_coroutine_threadsafe(work, broker._loop).result(10)


def has_waits(broker: ottla.Broker, topic: Topic, partition: int = 0) -> bool:
    return bool(broker.broker.topics.by_name[topic.name].partitions[partition].waits)


def test_a_fetch_waits_for_an_append_and_not_longer(broker: ottla.Broker, client: RawClient, made: Topic) -> None:
    latencies_ms = []
    with RawClient(broker.bootstrap_servers) as producer:
        for offset in range(20):
            sent = client.send(request(made, [wanted(offset)], FETCH.last, max_wait_ms=LONG_MS))
            ask_until(producer, lambda: has_waits(broker, made))
            begun = time.perf_counter()
            produce(producer, made.name, b"x")
            [answer] = client.receive(sent).responses
            latencies_ms.append((time.perf_counter() - begun) * 1000)
            assert offsets(answer.partitions[0]) == [offset]
            assert not has_waits(broker, made)
    # Produced, answered, woken and received. Polling would show: nobody polls every few milliseconds.
    assert sorted(latencies_ms)[5] < 5, latencies_ms


@EACH_VERSION
def test_a_fetch_that_waits_in_vain_is_answered_in_time(client: RawClient, filled: Topic, version: int) -> None:
    begun = time.monotonic()
    [data] = fetch(client, filled, wanted(10), version=version, max_wait_ms=20)
    assert 0.015 <= time.monotonic() - begun < 5
    assert (data.error_code, data.records) == (ErrorCode.NONE, b"")


def test_a_fetch_waits_for_as_many_bytes_as_it_wants_over_all_its_partitions(
    broker: ottla.Broker, client: RawClient, made: Topic
) -> None:
    produce(client, made.name, bytes(1000))
    parts = [wanted(partition=index) for index in range(3)]
    sent = client.send(request(made, parts, FETCH.last, max_wait_ms=LONG_MS, min_bytes=4000))
    with RawClient(broker.bootstrap_servers) as producer:
        ask_until(producer, lambda: has_waits(broker, made))
        for partition in (1, 2):
            produce(producer, made.name, bytes(1000), partition=partition)
            assert has_waits(broker, made)
        produce(producer, made.name, bytes(1000), partition=2)
    [answer] = client.receive(sent).responses
    assert [len(offsets(data)) for data in answer.partitions] == [1, 1, 2]


@pytest.mark.parametrize("min_bytes", [0, -1])
def test_a_fetch_that_wants_no_bytes_does_not_wait(client: RawClient, filled: Topic, min_bytes: int) -> None:
    [data] = fetch(client, filled, wanted(10), min_bytes=min_bytes, max_wait_ms=LONG_MS)
    assert data.records == b""


@pytest.mark.parametrize("max_wait_ms", [0, -1, -(2**31)])
def test_a_fetch_that_has_no_time_does_not_wait(client: RawClient, filled: Topic, max_wait_ms: int) -> None:
    [data] = fetch(client, filled, wanted(10), max_wait_ms=max_wait_ms)
    assert data.records == b""


def test_an_append_in_the_same_breath_is_not_missed(broker: ottla.Broker, client: RawClient, made: Topic) -> None:
    """What is appended after the fetch has read, and before its task has begun to wait."""
    partition = partition_of(broker, made)
    header = RequestHeader(FETCH, FETCH.last, 1, None, 0)
    asked = request(made, [wanted()], FETCH.last, max_wait_ms=LONG_MS)
    records = bytearray(batch(b"x"))

    async def in_one_breath() -> FetchResponse:
        waiting = handlers.fetch(broker.broker, asked, Context(header, None))  # type: ignore[arg-type]
        assert asyncio.iscoroutine(waiting)
        partition.log.append(records)
        partition.appended(len(records))
        return await asyncio.wait_for(waiting, 5)

    produce(client, made.name, b"y", partition=1)
    assert offsets(in_the_loop(broker, in_one_breath()).responses[0].partitions[0]) == [0]


def test_a_wait_that_nobody_takes_up_is_not_left_behind(broker: ottla.Broker, made: Topic, client: RawClient) -> None:
    with RawClient(broker.bootstrap_servers) as leaving:
        leaving.send(request(made, [wanted()], FETCH.last, max_wait_ms=LONG_MS))
        ask_until(client, lambda: has_waits(broker, made))
    ask_until(client, lambda: not has_waits(broker, made))
    assert broker.broker.listener.counts["failed"] == 0


def test_a_topic_that_is_deleted_while_a_fetch_waits_ends_it(
    broker: ottla.Broker, client: RawClient, made: Topic
) -> None:
    with RawClient(broker.bootstrap_servers) as by_name, RawClient(broker.bootstrap_servers) as by_id:
        waiting = [
            (each, each.send(request(made, [wanted()], version, max_wait_ms=LONG_MS), version))
            for each, version in ((by_name, 12), (by_id, 13))
        ]
        ask_until(client, lambda: len(broker.broker.topics.by_name[made.name].partitions[0].waits) == 2)
        delete_topic(client, made.name)
        codes = [each.receive(sent).responses[0].partitions[0].error_code for each, sent in waiting]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID]


def test_a_stopping_broker_answers_those_who_wait_at_once(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path) as broker:
        client, other = RawClient(broker.bootstrap_servers), RawClient(broker.bootstrap_servers)
        topic = Topic("t", create_topic(client, "t"))
        sent = client.send(request(topic, [wanted()], FETCH.last, max_wait_ms=LONG_MS))
        ask_until(other, lambda: has_waits(broker, topic))
        begun = time.monotonic()
    assert time.monotonic() - begun < 3
    [answer] = client.receive(sent).responses
    assert answer.partitions[0].error_code == ErrorCode.NONE
    client.close()
    other.close()


def test_many_who_wait_are_all_woken(broker: ottla.Broker, client: RawClient, made: Topic) -> None:
    waiting = [RawClient(broker.bootstrap_servers) for _ in range(50)]
    sent = [each.send(request(made, [wanted()], FETCH.last, max_wait_ms=LONG_MS)) for each in waiting]
    ask_until(client, lambda: len(broker.broker.topics.by_name[made.name].partitions[0].waits) == 50)
    produce(client, made.name, b"for all")
    for each, fetched in zip(waiting, sent, strict=True):
        assert offsets(each.receive(fetched).responses[0].partitions[0]) == [0]
        each.close()


# Durable before visible


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[ottla.Broker]:
    settings = Settings()
    settings = settings._replace(net=replace(settings.net, port=0), log=replace(settings.log, flush="ack"))
    with ottla.Broker(tmp_path, settings) as broker:
        yield broker


def test_under_flush_ack_a_fetch_waits_for_all_its_bytes_too(durable: ottla.Broker) -> None:
    with RawClient(durable.bootstrap_servers) as client, RawClient(durable.bootstrap_servers) as producer:
        topic = Topic("t", create_topic(client, "t"))
        sent = client.send(request(topic, [wanted()], FETCH.last, max_wait_ms=LONG_MS, min_bytes=3000))
        for count in range(1, 4):
            ask_until(producer, lambda: has_waits(durable, topic))
            produce(producer, "t", bytes(1000))
            assert durable.broker.topics.partition("t", 0).high_watermark == count
        assert offsets(client.receive(sent).responses[0].partitions[0]) == [0, 1, 2]


# Isolation. Transactions cannot be produced yet, so they are put into the log


@pytest.fixture
def transactions(broker: ottla.Broker, made: Topic) -> Topic:
    """0 committed, 1 its marker, 2 aborted, 3 its marker, 4 plain, 5 open, 6 plain."""

    async def append() -> None:
        log = partition_of(broker, made).log
        for producer_id, is_commit in ((1, True), (2, False)):
            log.append(transactional(producer_id))
            log.append_end_marker(producer_id, 0, EndMarker(is_commit=is_commit, coordinator_epoch=0))
        log.append(bytearray(batch(b"plain")))
        log.append(transactional(3))
        log.append(bytearray(batch(b"behind")))

    def transactional(producer_id: int) -> bytearray:
        now = dict.fromkeys(("base_timestamp", "max_timestamp"), time.time_ns() // 1_000_000)
        return any_batch(
            record(), 1, attributes=TRANSACTIONAL, producer_id=producer_id, producer_epoch=0, base_sequence=0, **now
        )

    in_the_loop(broker, append())
    return made


@EACH_VERSION
def test_read_committed_ends_at_the_last_stable_offset_and_lists_what_was_aborted(
    client: RawClient, transactions: Topic, version: int
) -> None:
    [data] = fetch(client, transactions, wanted(), version=version, isolation_level=1)
    assert (data.high_watermark, data.last_stable_offset) == (7, 5)
    assert offsets(data) == [0, 2, 4]  # the reader here does not filter
    assert [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()] == [(2, 2)]
    [data] = fetch(client, transactions, wanted(5), version=version, isolation_level=1)
    assert (data.records, data.aborted_transactions) == (b"", ())


@EACH_VERSION
def test_read_uncommitted_reads_on_and_hears_of_no_transactions(
    client: RawClient, transactions: Topic, version: int
) -> None:
    [data] = fetch(client, transactions, wanted(), version=version, isolation_level=0)
    assert (data.high_watermark, data.last_stable_offset) == (7, 5)
    assert offsets(data) == [0, 2, 4, 5, 6]
    assert data.aborted_transactions is None


def test_a_committed_reader_is_not_woken_by_what_it_cannot_read(
    broker: ottla.Broker, client: RawClient, transactions: Topic
) -> None:
    sent = client.send(request(transactions, [wanted(5)], FETCH.last, max_wait_ms=LONG_MS, isolation_level=1))
    with RawClient(broker.bootstrap_servers) as producer:
        ask_until(producer, lambda: has_waits(broker, transactions))
        for _ in range(3):
            produce(producer, transactions.name, b"not yet")
            ask_until(producer, lambda: has_waits(broker, transactions))

        async def commit() -> None:
            partition = partition_of(broker, transactions)
            partition.log.append_end_marker(3, 0, EndMarker(is_commit=True, coordinator_epoch=0))
            partition.appended(100)

        in_the_loop(broker, commit())
    assert offsets(client.receive(sent).responses[0].partitions[0]) == [5, 6, 7, 8, 9]


# Leader epochs


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 9])
def test_a_client_with_another_leader_epoch_is_told(client: RawClient, filled: Topic, version: int) -> None:
    known, future, past = fetch(
        client,
        filled,
        wanted(current_leader_epoch=0),
        wanted(partition=1, current_leader_epoch=1),
        wanted(partition=2, current_leader_epoch=-2),
        version=version,
    )
    assert known.error_code == ErrorCode.NONE
    assert (future.error_code, past.error_code) == (ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH)


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 12])
def test_a_log_that_parted_from_the_clients_is_told_with_where_and_without_records(
    client: RawClient, filled: Topic, version: int
) -> None:
    [same] = fetch(client, filled, wanted(2, last_fetched_epoch=0), version=version)
    assert (same.diverging_epoch.epoch, offsets(same)[:1]) == (-1, [2])
    [parted] = fetch(client, filled, wanted(2, last_fetched_epoch=3), version=version, max_wait_ms=LONG_MS)
    assert (parted.error_code, parted.records) == (ErrorCode.NONE, b"")
    assert (parted.diverging_epoch.epoch, parted.diverging_epoch.end_offset) == (0, 10)


def test_a_log_from_elsewhere_keeps_its_leader_epoch(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client, "t")
        produce(client, "t", b"a")
        broker.broker.topics.partition("t", 0).leader_epoch = 7
        produce(client, "t", b"b")
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        assert send_batch(client, "t", batch(b"c")).base_offset == 2
        assert broker.broker.topics.partition("t", 0).leader_epoch == 7
        assert broker.broker.topics.partition("t", 0).log.epochs.entries == [(0, 0), (7, 1)]


def test_large_batches_in_a_large_fetch(client: RawClient, made: Topic) -> None:
    for number in range(8):
        produce(client, made.name, bytes([number]) * 1_000_000)
    data, other = fetch(client, made, wanted(partition_max_bytes=2**31 - 1), wanted(partition=1), max_bytes=2**31 - 1)
    assert offsets(data) == list(range(8))
    assert other.records == b""
