"""Consumer groups of the new protocol (KIP-848) with a real client."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

import ottla
from ottla.broker.settings import Settings
from ottla.groups.config import GroupConfig
from ottla.net.config import NetConfig

from .adapters.base import ConsumerOptions, ProducerOptions
from .adapters.confluent import Confluent
from .group import Group
from .making import create_topic, until
from .processes import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .adapters.base import Producer

PARTITIONS: Final = 4
QUICK_SETTINGS: Final = {
    "consumer_min_heartbeat_interval_ms": 50,
    "consumer_heartbeat_interval_ms": 50,
    "consumer_min_session_timeout_ms": 1000,
    "consumer_session_timeout_ms": 10_000,
}
QUICK: Final = GroupConfig(**QUICK_SETTINGS)  # type: ignore[arg-type]
CLIENT: Final = Confluent()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ottla.Broker]:
    with ottla.Broker(tmp_path_factory.mktemp("broker"), Settings(net=NetConfig(port=0), groups=QUICK)) as broker:
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


def test_a_returning_static_member_gets_its_partitions_without_a_rebalance(servers: str, topic: str) -> None:
    with CLIENT.producer(servers) as producer, Group(servers, topic, topic, PARTITIONS) as group:
        ann = group.join(CLIENT, "ann", follows_broker=True)
        group.join(CLIENT, "bob", follows_broker=True)
        group.settle()
        before = [member.assignment for member in group.members]
        group.leave(ann)
        group.members.insert(0, group.join(CLIENT, "ann", follows_broker=True))
        group.members.pop()
        group.settle()
        assert [member.assignment for member in group.members] == before
        _produce(producer, topic, range(20))
        group.receive(20)

    assert _each_once(group, 20)


def test_a_pattern_matches_topics_created_later(servers: str, name: str) -> None:
    def assigned() -> set[str]:
        consumer.poll(0.05)
        return {at.topic for at in consumer.assignment()}

    create_topic(servers, f"{name}-1")
    create_topic(servers, f"other-{name}")
    with CLIENT.consumer(servers, ConsumerOptions(group=name, follows_broker=True)) as consumer:
        consumer.subscribe(f"^{name}-.*")
        until(lambda: assigned() == {f"{name}-1"}, "the first topic")
        create_topic(servers, f"{name}-2")
        until(lambda: assigned() == {f"{name}-1", f"{name}-2"}, "the second topic")


def test_a_group_continues_after_its_broker_was_killed(tmp_path: Path, name: str) -> None:
    settings = [f"groups.{setting}={value}" for setting, value in QUICK_SETTINGS.items()]
    with Server(tmp_path / "data", *settings) as server:
        create_topic(server.address, name, PARTITIONS)
        with (
            CLIENT.producer(server.address, ProducerOptions(is_idempotent=True)) as producer,
            Group(server.address, name, name, PARTITIONS) as group,
        ):
            group.join(CLIENT, follows_broker=True)
            group.join(CLIENT, follows_broker=True)
            group.settle()
            held = [set(member.assignment) for member in group.members]
            _produce(producer, name, range(40))
            group.receive(40)
            server.restart("kill")
            _produce(producer, name, range(40, 80))
            group.receive(80)
            assert [member.assignment for member in group.members] == held

    assert _each_once(group, 80)


def test_a_classic_group_is_migrated_online_and_back(broker: ottla.Broker, servers: str, topic: str) -> None:
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
