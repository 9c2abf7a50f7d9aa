"""Topics that do not exist when a client first names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.broker.config import BrokerConfig
from ottla.broker.settings import Settings
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.net.config import NetConfig

from .adapters.base import ConsumerOptions, Refused, values
from .adapters.confluent import Confluent
from .adapters.ours import Ottla
from .making import create_topic, receive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .adapters.base import Client, Consumer


@pytest.fixture(scope="module")
def strict_servers() -> Iterator[str]:
    """Bootstrap servers of a broker without automatic topic creation."""
    settings = Settings(broker=BrokerConfig(auto_create_topics=False), net=NetConfig(port=0))
    with ottla.Broker(settings=settings) as broker:
        yield broker.bootstrap_servers


def _look_in_vain(consumer: Consumer) -> None:
    """Poll for longer than a metadata request takes; some clients report an error, others nothing."""
    try:
        received = consumer.poll(0.3)
    except Refused as refused:
        if refused.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
    else:
        assert received == []


def test_the_first_record_creates_its_topic(client: Client, servers: str, name: str) -> None:
    with client.producer(servers) as producer, client.consumer(servers) as consumer:
        assert producer.place(name, b"first") == (0, 0)
        consumer.assign(TopicPartition(name, 0))
        assert values(receive(consumer, 1)) == [b"first"]


def test_a_consumer_that_may_not_create_topics_creates_none(broker: ottla.Broker, servers: str, name: str) -> None:
    # aiokafka has no such setting, and kafka-python 3.0 does not pass it to its requests.
    options = ConsumerOptions(group=name, creates_topics=False, metadata_max_age_ms=100)
    with Confluent().consumer(servers, options) as consumer:
        consumer.subscribe(name)
        _look_in_vain(consumer)
    assert name not in broker.broker.topics.by_name


def test_a_consumer_finds_its_topic_once_it_is_created(client: Client, strict_servers: str, name: str) -> None:
    if isinstance(client, Ottla):
        pytest.skip("Ottla's client refuses to subscribe to an unknown topic, unless by a pattern")
    options = ConsumerOptions(group=name, metadata_max_age_ms=100)
    with client.consumer(strict_servers, options) as consumer, client.producer(strict_servers) as producer:
        consumer.subscribe(name)
        _look_in_vain(consumer)
        create_topic(strict_servers, name)
        producer.place(name, b"late")
        assert values(receive(consumer, 1)) == [b"late"]
