"""Compaction in a running broker, as clients see it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.broker.broker import Settings
from ottla.client.errors import BrokerError
from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from ottla.broker.broker import Broker

COMPACT = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
VALUE = b"x" * 1000


@pytest.fixture
def embedded() -> Iterator[ottla.Broker]:
    with ottla.Broker() as broker:
        yield broker


def run(embedded: ottla.Broker, work: Coroutine[object, object, None]) -> None:
    assert embedded._loop is not None
    asyncio.run_coroutine_threadsafe(work, embedded._loop).result(60)


def write(embedded: ottla.Broker, topic: str, rounds: int, keys: int = 500) -> None:
    with ottla.Producer(embedded.bootstrap_servers) as producer:
        for number in range(rounds):
            for key in range(keys):
                producer.send(topic, b"%d-" % number + VALUE, key=b"%d" % key)


def read(embedded: ottla.Broker, topic: str) -> list[tuple[int, bytes, bytes]]:
    found = []
    with ottla.Consumer(embedded.bootstrap_servers, [topic], auto_offset_reset="earliest") as consumer:
        while records := consumer.poll(5000, timeout_ms=1000):
            found += [(record.offset, record.key, record.value) for record in records]
            if found[-1][0] == consumer.end_offsets(*consumer.assignment).popitem()[1] - 1:
                break
    return found


def test_a_consumer_gets_the_last_of_each_key_where_it_was(embedded: ottla.Broker) -> None:
    with ottla.Admin(embedded.bootstrap_servers) as admin:
        admin.create_topic("t", configs=COMPACT)
    write(embedded, "t", rounds=8)
    before = read(embedded, "t")
    log = embedded.broker.topics.by_name["t"].partitions[0].log
    size = log.size

    run(embedded, embedded.broker.compactor.check())

    after = read(embedded, "t")
    assert log.size < size / 2
    assert len(after) < len(before)
    assert {key: (offset, value) for offset, key, value in after} == {
        key: (offset, value) for offset, key, value in before
    }
    assert embedded.broker.compactor.passes == 1
    run(embedded, embedded.broker.compactor.check())
    assert embedded.broker.compactor.passes == 1, "there was nothing left to do"


def test_what_is_compacted_is_known_after_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("data")
    with ottla.Broker(folder) as embedded:
        with ottla.Admin(embedded.bootstrap_servers) as admin:
            admin.create_topic("t", configs=COMPACT)
        write(embedded, "t", rounds=8)
        run(embedded, embedded.broker.compactor.check())
        before = read(embedded, "t")
    assert b"t 0 " in (folder / "cleaner-offset-checkpoint").read_bytes()
    with ottla.Broker(folder) as embedded:
        run(embedded, embedded.broker.compactor.check())
        assert embedded.broker.compactor.passes == 0
        assert read(embedded, "t") == before


def test_records_without_a_key_are_refused(embedded: ottla.Broker) -> None:
    with ottla.Admin(embedded.bootstrap_servers) as admin:
        admin.create_topic("t", configs=COMPACT)
    with ottla.Producer(embedded.bootstrap_servers) as producer:
        delivery = producer.send("t", b"x")
        with pytest.raises(BrokerError, match="key") as refused:
            delivery.result()
        assert refused.value.code == ErrorCode.INVALID_RECORD


def test_a_topic_deleted_meanwhile_troubles_nobody(embedded: ottla.Broker, caplog: pytest.LogCaptureFixture) -> None:
    with ottla.Admin(embedded.bootstrap_servers) as admin:
        admin.create_topic("t", configs=COMPACT)
    write(embedded, "t", rounds=4)

    async def delete_while_compacting(broker: Broker) -> None:
        compacting = asyncio.create_task(broker.compactor.check())
        await asyncio.sleep(0)
        broker.delete_topic(broker.topics.by_name["t"])
        await compacting

    run(embedded, delete_while_compacting(embedded.broker))
    assert caplog.records == []


def test_a_stop_does_not_wait_for_compaction() -> None:
    slowly = replace(Settings().broker, compaction_max_bytes_per_s=1)
    settings = Settings(broker=slowly, net=replace(Settings().net, port=0))
    with ottla.Broker(settings=settings) as embedded:
        with ottla.Admin(embedded.bootstrap_servers) as admin:
            admin.create_topic("t", configs=COMPACT)
        write(embedded, "t", rounds=4)

        async def begin_and_cancel(broker: Broker) -> None:
            compacting = asyncio.create_task(broker.compactor.check())
            await asyncio.sleep(0)
            compacting.cancel()

        run(embedded, begin_and_cancel(embedded.broker))
