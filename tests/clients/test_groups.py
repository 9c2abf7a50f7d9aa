"""Groups whose members come and go."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

from ottla.core.ids import TopicPartition
from ottla.groups.classic import ClassicGroup

from .adapters.aio import Aiokafka
from .adapters.base import Committed, ConsumerOptions
from .conftest import CLIENTS
from .group import Group
from .making import create_topic, until

if TYPE_CHECKING:
    import ottla

    from .adapters.base import Client, Producer
    from .group import Member

PARTITIONS: Final = 4


@pytest.fixture
def topic(servers: str, name: str) -> str:
    create_topic(servers, name, PARTITIONS)
    return name


def _produce(producer: Producer, topic: str, numbers: range) -> None:
    for number in numbers:
        producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
    producer.flush()


@pytest.mark.parametrize("is_cooperative", [False, True], ids=["eager", "cooperative"])
def test_every_record_is_consumed_once_while_members_join_and_leave(
    client: Client, servers: str, topic: str, is_cooperative: bool
) -> None:
    if is_cooperative and isinstance(client, Aiokafka):
        pytest.skip("aiokafka has no cooperative assignor")
    with client.producer(servers) as producer, Group(servers, topic, topic, PARTITIONS) as group:
        first = group.join(client, is_cooperative=is_cooperative)
        _produce(producer, topic, range(40))
        group.receive(40)
        group.join(client, is_cooperative=is_cooperative)
        group.join(client, is_cooperative=is_cooperative)
        group.settle()
        _produce(producer, topic, range(40, 80))
        group.receive(80)
        group.leave(first)
        group.settle()
        _produce(producer, topic, range(80, 120))
        group.receive(120)

    assert Counter(record.value for record in group.received) == Counter(b"%d" % n for n in range(120))
    with client.consumer(servers, ConsumerOptions(group=topic)) as watcher:
        for partition in range(PARTITIONS):
            assert watcher.committed(TopicPartition(topic, partition)) == Committed(30)


@pytest.mark.parametrize("is_cooperative", [False, True], ids=["eager", "cooperative"])
def test_a_rebalance_under_load_skips_no_record(client: Client, servers: str, topic: str, is_cooperative: bool) -> None:
    if is_cooperative and isinstance(client, Aiokafka):
        pytest.skip("aiokafka has no cooperative assignor")
    with client.producer(servers) as producer, Group(servers, topic, topic, PARTITIONS) as group:
        group.join(client, is_cooperative=is_cooperative)
        sent = 0
        for _ in range(2):
            joined = group.join(client, is_cooperative=is_cooperative)

            def has_joined(joined: Member = joined) -> bool:
                nonlocal sent
                _produce(producer, topic, range(sent, sent + 8))
                sent += 8
                return bool(joined.assignment)

            until(has_joined)
        group.leave(group.members[0])
        _produce(producer, topic, range(sent, sent + 8))
        sent += 8
        group.receive(sent)

    assert {record.value for record in group.received} == {b"%d" % number for number in range(sent)}


def test_members_of_all_clients_share_one_group(servers: str, topic: str) -> None:
    # All support the round-robin assignor, the only one of aiokafka; the others prefer range.
    with CLIENTS[0].producer(servers) as producer, Group(servers, topic, topic, PARTITIONS) as group:
        for client in CLIENTS:
            group.join(client)
        group.settle()
        _produce(producer, topic, range(40))
        group.receive(40)
    assert sorted(int(record.value or b"") for record in group.received) == list(range(40))


def test_a_static_member_returns_without_a_rebalance(
    client: Client, broker: ottla.Broker, servers: str, topic: str
) -> None:
    with client.producer(servers) as producer, Group(servers, topic, topic, PARTITIONS) as group:
        first = group.join(client, "one")
        second = group.join(client, "two")
        group.settle()
        of_first, of_second = first.assignment, second.assignment
        generation = _generation(broker, topic)

        group.leave(first)
        first = group.join(client, "one")
        group.settle()
        _produce(producer, topic, range(40))
        group.receive(40)

        assert (first.assignment, second.assignment) == (of_first, of_second)
        assert _generation(broker, topic) == generation
    assert sorted(int(record.value or b"") for record in group.received) == list(range(40))


def _generation(broker: ottla.Broker, group: str) -> int:
    found = broker.broker.groups.rules.table.get(group)
    assert isinstance(found, ClassicGroup)
    return found.generation
