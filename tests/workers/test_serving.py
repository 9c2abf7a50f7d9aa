"""Workers as clients see them: one bootstrap address, and several brokers behind it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka.admin import AdminClient
from tests.clients.test_share_groups import configure, consuming

import ottla
from ottla.cluster.server import free_port

from .serving import PATIENCE_S, consume, create, leaders, produce, serve, until, workers_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.serving import Serve


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    metrics = f"workers.first_http_port={free_port()}"
    with serve(tmp_path_factory.mktemp("workers"), 2, "--http-port", "0", "--set", metrics) as served:
        yield served


def test_clients_find_every_worker_at_the_one_address(served: Serve) -> None:
    told = AdminClient({"bootstrap.servers": served.address}).list_topics(timeout=PATIENCE_S)

    assert {each.id: f"{each.host}:{each.port}" for each in told.brokers.values()} == {
        number: worker["kafka"] for number, worker in enumerate(workers_of(served))
    }
    assert served.address not in [worker["kafka"] for worker in workers_of(served)]


def test_partitions_are_spread_over_the_workers_and_each_has_its_own_folder(served: Serve) -> None:
    create(served.address, "spread", 6)

    led = leaders(served.address, "spread")
    assert sorted(led) == [0, 0, 0, 1, 1, 1]
    expected = {f"worker-{leader}/spread-{partition}" for partition, leader in enumerate(led)}
    until(lambda: {str(each.relative_to(served.data_dir)) for each in served.data_dir.glob("*/spread-*")} == expected)


def test_confluent_kafka_writes_to_and_reads_from_all_of_them(served: Serve) -> None:
    create(served.address, "confluent", 4)
    values = [str(number) for number in range(200)]

    produce(served.address, "confluent", values)

    assert sorted(consume(served.address, "confluent", 200)) == sorted(values)


def test_a_share_group_reads_from_all_of_them(served: Serve) -> None:
    create(served.address, "shared", 4)
    configure(served.address, "sharing")
    values = [str(number) for number in range(200)]
    produce(served.address, "shared", values)
    got: list[str] = []
    with consuming(served.address, "sharing", "shared", mode="implicit") as one:
        give_up_at_s = time.monotonic() + PATIENCE_S
        while len(got) < len(values) and time.monotonic() < give_up_at_s:
            got += [(message.value() or b"").decode() for message in one.poll(1)]

    assert sorted(got) == sorted(values)


def test_aiokafka_writes_to_and_reads_from_all_of_them(served: Serve) -> None:
    create(served.address, "aiokafka", 4)

    async def there_and_back() -> set[bytes]:
        async with AIOKafkaProducer(bootstrap_servers=served.address, acks="all") as producer:
            for number in range(100):
                await producer.send_and_wait("aiokafka", b"%d" % number, partition=number % 4)
        consumer = AIOKafkaConsumer(
            "aiokafka", bootstrap_servers=served.address, group_id="aiokafka", auto_offset_reset="earliest"
        )
        async with consumer, asyncio.timeout(PATIENCE_S):
            return {(await anext(consumer)).value for _ in range(100)}

    assert asyncio.run(there_and_back()) == {b"%d" % number for number in range(100)}


def test_groups_are_kept_by_different_workers(served: Serve) -> None:
    create(served.address, "grouped", 2)
    produce(served.address, "grouped", ["a", "b"])
    names = [f"group-{number}" for number in range(6)]
    for name in names:
        assert len(consume(served.address, "grouped", 2, name)) == 2

    admin = AdminClient({"bootstrap.servers": served.address})
    described = admin.describe_consumer_groups(names)

    assert {each.result(PATIENCE_S).coordinator.id for each in described.values()} == {0, 1}


def test_a_transaction_spans_workers_and_is_whole_or_absent(served: Serve) -> None:
    create(served.address, "transacted", 2)
    assert sorted(leaders(served.address, "transacted")) == [0, 1]
    with ottla.Producer(served.address, transactional_id="t") as producer:
        with suppress(ZeroDivisionError), producer.transaction():
            for partition in (0, 1):
                producer.send("transacted", b"never", partition=partition)
            raise ZeroDivisionError
        with producer.transaction():
            for partition in (0, 1):
                producer.send("transacted", b"whole", partition=partition)

    assert consume(served.address, "transacted", 2, "committed") == ["whole", "whole"]


def test_each_worker_has_its_own_metrics(served: Serve) -> None:
    create(served.address, "counted", 2)
    produce(served.address, "counted", [str(number) for number in range(20)])

    told = [httpx.get(f"http://{worker['http']}/metrics").text for worker in workers_of(served)]

    for partition, leader in enumerate(leaders(served.address, "counted")):
        line = f'topic="counted",partition="{partition}"'
        assert line in told[leader]


def test_a_topic_created_over_http_is_spread_over_all_workers(served: Serve) -> None:
    created = httpx.post(f"http://{served.ready['http']}/v1/topics", json={"name": "web", "partitions": 4})

    assert created.status_code == 201
    assert sorted(leaders(served.address, "web")) == [0, 0, 1, 1]


def test_over_http_messages_are_written_to_and_read_from_every_worker(served: Serve) -> None:
    topic = f"http://{served.ready['http']}/v1/topics/rested"
    create(served.address, "rested", 2)
    assert sorted(leaders(served.address, "rested")) == [0, 1]

    for partition in (0, 1):
        message = {"partition": partition, "value": f"to {partition}"}
        assert httpx.post(f"{topic}/messages", json={"messages": [message]}, timeout=PATIENCE_S).is_success

    for partition in (0, 1):
        page = httpx.get(f"{topic}/messages", params={"partition": partition}, timeout=PATIENCE_S)
        assert [message["value"] for message in page.json()["messages"]] == [f"to {partition}"]
