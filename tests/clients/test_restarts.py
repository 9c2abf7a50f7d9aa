"""Broker restarts while clients are running."""

from __future__ import annotations

import gc
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING

import pytest

from ottla.core.ids import TopicPartition

from .adapters.base import PATIENCE_S, Committed, ConsumerOptions, Placed, ProducerOptions
from .group import Group
from .making import create_topic, receive, until
from .processes import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .adapters.base import Client

# kafka-python forgets to close the sockets of connections that were refused.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(autouse=True)
def _collect_here() -> Iterator[None]:
    """Collect the clients' unclosed sockets here, where the warning is ignored, instead of in another test."""
    yield
    gc.collect()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as server:
        yield server


@pytest.mark.parametrize(
    ("is_idempotent", "how"),
    [(True, "stop"), (True, "kill"), (False, "kill")],
    ids=["idempotent-stop", "idempotent-kill", "plain-kill"],
)
def test_producers_and_consumers_continue_after_a_restart_without_loss(
    client: Client, server: Server, name: str, how: str, is_idempotent: bool
) -> None:
    at = TopicPartition(name, 0)
    create_topic(server.address, name)
    options = ProducerOptions(is_idempotent=is_idempotent, linger_ms=1)
    sent: list[Future[Placed]] = []
    with (
        client.producer(server.address, options) as producer,
        Group(server.address, name, name, partitions=1) as group,
        client.consumer(server.address) as reader,
    ):
        group.join(client)

        def acknowledged(count: int) -> bool:
            for _ in range(20):
                sent.append(producer.send(name, b"%d" % len(sent)))
            wait(sent[-20:], timeout=0.05)
            return sum(future.done() for future in sent) >= count

        until(lambda: acknowledged(200))
        sent += [producer.send(name, b"%d" % number) for number in range(len(sent), len(sent) + 100)]
        server.restart(how)
        goal = len(sent) + 200
        until(lambda: acknowledged(goal))
        producer.flush()
        offsets = [future.result(PATIENCE_S).offset for future in sent]
        reader.assign(at)
        _, end = reader.begin_and_end(at)
        written = [int(record.value or b"") for record in receive(reader, end)]
        # A producer that is not idempotent may have written some twice.
        group.until(lambda: {int(record.value or b"") for record in group.received} == set(written), "every record")

    assert set(written) == set(range(len(sent)))
    for number, offset in enumerate(offsets):
        assert written[offset] == number
    if is_idempotent:
        assert written == sorted(set(written))


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_commits_and_topics_survive_a_restart(client: Client, server: Server, name: str, how: str) -> None:
    at = TopicPartition(name, 0)
    create_topic(server.address, name, configs={"retention.ms": "-1"})
    with client.producer(server.address) as producer:
        for number in range(10):
            producer.send(name, b"%d" % number)
        producer.flush()
    options = ConsumerOptions(group=name)
    with client.consumer(server.address, options) as consumer:
        consumer.subscribe(name)
        receive(consumer, 10)
        consumer.commit({at: Committed(6)})
    server.restart(how)
    with client.consumer(server.address, options) as consumer:
        assert consumer.begin_and_end(at) == (0, 10)
        consumer.subscribe(name)
        assert [record.offset for record in receive(consumer, 4)] == [6, 7, 8, 9]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_group_survives_a_restart_without_a_rebalance(client: Client, server: Server, name: str, how: str) -> None:
    create_topic(server.address, name, partitions=2)
    with client.producer(server.address) as producer, Group(server.address, name, name, 2) as group:
        group.join(client)
        group.join(client)
        group.settle()
        for number in range(20):
            producer.send(name, b"%d" % number, partition=number % 2)
        producer.flush()
        group.receive(20)
        server.restart(how)
        for number in range(20, 40):
            producer.send(name, b"%d" % number, partition=number % 2)
        producer.flush()
        group.receive(40)
        group.settle()
    assert sorted(int(record.value or b"") for record in group.received) == list(range(40))
