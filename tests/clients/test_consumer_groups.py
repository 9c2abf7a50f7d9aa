"""Groups in which the broker assigns (KIP-848), with a real client."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

import ottla
from ottla.broker.broker import Settings
from ottla.groups.config import GroupConfig

from .adapters.confluent import Confluent
from .group import Group
from .making import create_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .adapters.base import Producer

PARTITIONS: Final = 4
QUICK: Final = GroupConfig(
    consumer_min_heartbeat_interval_ms=50,
    consumer_heartbeat_interval_ms=50,
    consumer_min_session_timeout_ms=1000,
    consumer_session_timeout_ms=3000,
)
CLIENT: Final = Confluent()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ottla.Broker]:
    with ottla.Broker(tmp_path_factory.mktemp("broker"), Settings(groups=QUICK)) as broker:
        yield broker


@pytest.fixture
def topic(servers: str, name: str) -> str:
    create_topic(servers, name, PARTITIONS)
    return name


def _produce(producer: Producer, topic: str, numbers: range) -> None:
    for number in numbers:
        producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
    producer.flush()


def _each_once(group: Group, count: int) -> bool:
    return Counter(record.value for record in group.received) == Counter(b"%d" % number for number in range(count))


def test_every_record_is_consumed_once_while_members_join_and_leave(servers: str, topic: str) -> None:
    with CLIENT.producer(servers) as producer, Group(servers, topic, topic, PARTITIONS) as group:
        first = group.join(CLIENT, follows_broker=True)
        _produce(producer, topic, range(40))
        group.receive(40)
        group.join(CLIENT, follows_broker=True)
        group.join(CLIENT, follows_broker=True)
        group.settle()
        _produce(producer, topic, range(40, 80))
        group.receive(80)
        group.leave(first)
        group.settle()
        _produce(producer, topic, range(80, 120))
        group.receive(120)

    assert _each_once(group, 120)


def test_a_classic_group_is_taken_over_online_and_given_back(broker: ottla.Broker, servers: str, topic: str) -> None:
    def kind() -> str:
        return next(one.listed().group_type for one in broker.broker.groups.rules.table if one.group_id == topic)

    with CLIENT.producer(servers) as producer, Group(servers, topic, topic, PARTITIONS) as group:
        group.join(CLIENT, is_cooperative=True)
        group.join(CLIENT, is_cooperative=True)
        group.settle()
        _produce(producer, topic, range(40))
        group.receive(40)
        assert kind() == "classic"

        newcomer = group.join(CLIENT, follows_broker=True)
        group.settle()
        assert kind() == "consumer"
        _produce(producer, topic, range(40, 80))
        group.receive(80)

        group.leave(newcomer)
        group.settle()
        assert kind() == "classic"
        _produce(producer, topic, range(80, 120))
        group.receive(120)

    assert _each_once(group, 120)
