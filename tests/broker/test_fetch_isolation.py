"""Isolation levels of fetch. The tests write transactions into the log directly."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from tests.records.making import TRANSACTIONAL, record
from tests.records.making import batch as any_batch

from ottla.records.control import EndMarker
from ottla.wire.apis import FETCH

from .fetching import (
    EACH_VERSION,
    LONG_MS,
    fetch,
    has_waits,
    in_the_loop,
    offsets,
    partition_of,
    request,
    wanted,
)
from .making import Topic, ask_until, batch, produce
from .raw_client import RawClient

if TYPE_CHECKING:
    import ottla


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
def test_read_committed_ends_at_the_last_stable_offset_and_lists_aborted_transactions(
    client: RawClient, transactions: Topic, version: int
) -> None:
    [data] = fetch(client, transactions, wanted(), version=version, isolation_level=1)
    assert (data.high_watermark, data.last_stable_offset) == (7, 5)
    assert offsets(data) == [0, 2, 4]  # this test's reader does not filter
    assert [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()] == [(2, 2)]
    [data] = fetch(client, transactions, wanted(5), version=version, isolation_level=1)
    assert (data.records, data.aborted_transactions) == (b"", ())


@EACH_VERSION
def test_read_uncommitted_returns_everything_and_lists_no_transactions(
    client: RawClient, transactions: Topic, version: int
) -> None:
    [data] = fetch(client, transactions, wanted(), version=version, isolation_level=0)
    assert (data.high_watermark, data.last_stable_offset) == (7, 5)
    assert offsets(data) == [0, 2, 4, 5, 6]
    assert data.aborted_transactions is None


def test_a_read_committed_fetch_is_not_woken_by_records_above_the_last_stable_offset(
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
            partition.append_end_marker((3, 0), EndMarker(is_commit=True, coordinator_epoch=0))

        in_the_loop(broker, commit())
    assert offsets(client.receive(sent).responses[0].partitions[0]) == [5, 6, 7, 8, 9]
