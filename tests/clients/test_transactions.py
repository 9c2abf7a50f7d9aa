"""Transactions of every client: atomic, exactly once, with fencing of earlier producers."""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.client.producer.reading import values

from ottla.core.ids import TopicPartition

from .adapters.base import ConsumerOptions, Refused
from .adapters.transactional import TRANSACTIONAL
from .making import create_topic, receive
from .processes import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .adapters.base import Client
    from .adapters.transactional import Transactional

    Making = Callable[[str, str], Transactional]

# kafka-python forgets to close the sockets of connections that were refused.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

INPUT = 60
AT_A_TIME = 10
RESTART_AFTER = (1, 3)
"""Steps of the loop after which the broker is killed."""


@pytest.fixture(autouse=True)
def _collect_here() -> Iterator[None]:
    """Collect the clients' unclosed sockets here, where the warning is ignored, instead of in another test."""
    yield
    gc.collect()


@pytest.fixture(params=TRANSACTIONAL.values(), ids=TRANSACTIONAL)
def making(request: pytest.FixtureRequest) -> Making:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as server:
        yield server


def test_committed_records_are_read_and_aborted_ones_are_not(servers: str, topic: str, making: Making) -> None:
    with making(servers, topic) as producer:
        for number in range(6):
            producer.begin()
            producer.send(topic, b"%d" % number)
            (producer.commit if number % 2 == 0 else producer.abort)()
    assert values(servers, topic) == [b"0", b"2", b"4"]


def test_every_client_reads_only_committed_records(servers: str, topic: str, client: Client) -> None:
    with TRANSACTIONAL["ottla"](servers, topic) as producer:
        for number in range(6):
            producer.begin()
            producer.send(topic, b"%d" % number)
            (producer.commit if number % 2 else producer.abort)()
        producer.begin()
        producer.send(topic, b"not yet")
        with client.consumer(servers, ConsumerOptions(is_committed_only=True)) as consumer:
            at = TopicPartition(topic, 0)
            consumer.assign(at)
            consumer.seek(at, 0)
            assert [record.value for record in receive(consumer, 3)] == [b"1", b"3", b"5"]
            assert consumer.poll(client.idle_poll_s) == []
            producer.commit()
            assert [record.value for record in receive(consumer, 1)] == [b"not yet"]


def test_a_zombie_producer_is_fenced_and_leaves_no_records(servers: str, topic: str, making: Making) -> None:
    with making(servers, topic) as zombie:
        zombie.begin()
        zombie.send(topic, b"zombie")
        with making(servers, topic) as successor:
            with pytest.raises(Refused):
                _go_on(zombie, topic)
            successor.begin()
            successor.send(topic, b"good")
            successor.commit()
        with suppress(Refused):
            zombie.abort()
    assert values(servers, topic) == [b"good"]


def _go_on(producer: Transactional, topic: str) -> None:
    producer.send(topic, b"zombie again")
    producer.commit()


def test_a_read_process_write_loop_is_exactly_once_while_the_broker_is_killed(
    server: Server, making: Making, name: str
) -> None:
    source, target = f"{name}-in", f"{name}-out"
    create_topic(server.address, source)
    create_topic(server.address, target)
    _fill(server.address, source)
    _transform(server, making, source, target, name)

    assert values(server.address, target) == [b"made of %d" % number for number in range(INPUT)]
    assert _progress(server.address, name, source) == INPUT


def _fill(address: str, source: str) -> None:
    from tests.broker.making import produce
    from tests.broker.raw_client import RawClient

    with RawClient(address) as client:
        produce(client, source, *(b"%d" % number for number in range(INPUT)))


def _progress(address: str, group: str, source: str) -> int:
    import ottla

    with ottla.Admin(address) as admin:
        found = admin.group_offsets(group).get(TopicPartition(source, 0))
    return 0 if found is None else found.offset


def _transform(server: Server, making: Making, source: str, target: str, group: str) -> None:
    """Process until everything is done; after any error continue from the committed offsets."""
    steps = 0
    deaths = 0
    producer: Transactional | None = None
    while (begin := _progress(server.address, group, source)) < INPUT:
        assert steps < 50, "the loop does not finish"
        steps += 1
        try:
            producer = producer or making(server.address, group)
            producer.begin()
            for value in range(begin, min(begin + AT_A_TIME, INPUT)):
                producer.send(target, b"made of %d" % value)
            producer.send_offset(group, TopicPartition(source, 0), min(begin + AT_A_TIME, INPUT))
            if deaths < len(RESTART_AFTER) and steps > RESTART_AFTER[deaths]:
                deaths += 1
                server.restart("kill")
            producer.commit()
        except Refused:
            if producer is not None:
                with suppress(Refused):
                    producer.close()
            producer = None
    assert deaths == len(RESTART_AFTER)
    if producer is not None:
        producer.close()
