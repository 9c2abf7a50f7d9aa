"""Third-party clients, configured to be fast in tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, Producer

if TYPE_CHECKING:
    from ottla.testing import EphemeralBroker


def producer(broker: EphemeralBroker, **options: Any) -> Producer:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, "retry.backoff.ms": 10}
    return Producer({**settings, "log_level": 0, **options})


def consumer(broker: EphemeralBroker, group: str, **options: Any) -> Consumer:
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }
    return Consumer({**settings, **options})


def send(client: Producer, topic: str, value: bytes) -> None:
    """Send one record and wait for its delivery."""
    failures: list[Any] = []
    client.produce(topic, value, on_delivery=lambda error, _: failures.append(error))
    assert client.flush(20) == 0
    assert failures == [None]


def failure_of(client: Producer, topic: str, value: bytes, **where: int) -> KafkaError:
    """The error of a record that is not delivered."""
    told: list[KafkaError] = []
    client.produce(topic, value, on_delivery=lambda error, _: told.append(error), **where)
    assert client.flush(20) == 0
    [error] = told
    return error


def values(broker: EphemeralBroker, topic: str) -> list[object]:
    return [record.value for record in broker.records(topic)]


def poll(client: Consumer) -> bytes:
    message = client.poll(20)
    assert message is not None
    assert message.error() is None, message.error()
    value = message.value()
    assert isinstance(value, bytes)
    return value
