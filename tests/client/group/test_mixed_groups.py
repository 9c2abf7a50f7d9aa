"""Ottla's consumers and those of other Python clients in one group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from tests.clients.adapters.aio import Aiokafka
from tests.clients.adapters.confluent import Confluent
from tests.clients.adapters.kafka_python import KafkaPython
from tests.clients.adapters.ours import Ottla
from tests.clients.group import Group
from tests.clients.making import create_topic

from .playing import broker

if TYPE_CHECKING:
    from tests.clients.adapters.base import Client, Producer

PARTITIONS: Final = 8

# The other clients have races, and kafka-python leaks sockets.
pytestmark = [pytest.mark.flaky(reruns=2), pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]


def _produce(producer: Producer, topic: str, numbers: range) -> None:
    for number in numbers:
        producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
    producer.flush()


@pytest.mark.parametrize("is_first", [True, False], ids=["we-lead", "they-lead"])
@pytest.mark.parametrize(
    ("others", "is_cooperative"),
    [
        pytest.param([Confluent()], False, id="confluent-eager"),
        pytest.param([Confluent()], True, id="confluent-cooperative"),
        pytest.param([KafkaPython()], False, id="kafka-python-eager"),
        pytest.param([KafkaPython()], True, id="kafka-python-cooperative"),
        pytest.param([Aiokafka()], False, id="aiokafka-eager"),
        pytest.param([Confluent(), KafkaPython(), Aiokafka()], False, id="all-eager"),
        pytest.param([Confluent(), KafkaPython()], True, id="all-cooperative"),
    ],
)
def test_each_record_reaches_one_member_while_members_join_and_leave(
    others: list[Client], is_cooperative: bool, is_first: bool
) -> None:
    with broker() as running:
        servers, topic = running.bootstrap_servers, "mixed"
        create_topic(servers, topic, PARTITIONS)
        clients = [Ottla(), *others] if is_first else [*others, Ottla()]
        with Confluent().producer(servers) as producer, Group(servers, topic, topic, PARTITIONS) as group:
            for client in clients:
                group.join(client, is_cooperative=is_cooperative)
                group.settle()
            _produce(producer, topic, range(80))
            group.receive(80)
            group.leave(group.members[0])
            group.settle()
            group.join(Ottla(), is_cooperative=is_cooperative)
            group.settle()
            _produce(producer, topic, range(80, 160))
            group.receive(160)
    assert sorted(int(record.value or b"") for record in group.received) == list(range(160))
