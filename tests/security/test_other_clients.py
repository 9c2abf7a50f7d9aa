"""confluent-kafka, kafka-python and aiokafka, over TLS and with each mechanism."""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider

from ottla.client.admin.acls import Acl
from ottla.core.security import AclOperation, ResourceType

from .securing import ALL_MECHANISMS, PASSWORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .securing import Secured

PROTOCOLS = ["SASL_PLAINTEXT", "SASL_SSL"]
PATIENCE_S = 20


# confluent-kafka


def librdkafka(broker: Secured, protocol: str, mechanism: str, password: str | None = None) -> dict[str, Any]:
    config: dict[str, Any] = {
        "bootstrap.servers": broker.address(protocol),
        "security.protocol": protocol,
        "ssl.ca.location": str(broker.authority.cert),
        "log_level": 0,
    }
    if protocol.startswith("SASL"):
        config["sasl.mechanisms"] = mechanism
    if mechanism == "OAUTHBEARER":
        config["oauth_cb"] = lambda _: (broker.issuer.token("ann"), time.time() + 3600)
    elif protocol.startswith("SASL"):
        config |= {"sasl.username": "ann", "sasl.password": password or PASSWORDS["ann"]}
    return config


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
def test_confluent_kafka_writes_and_reads(broker: Secured, protocol: str, mechanism: str) -> None:
    topic = f"confluent-{protocol}-{mechanism}"
    config = librdkafka(broker, protocol, mechanism)
    producer = Producer(config)
    producer.produce(topic, b"hello")
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer(config | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.value() == b"hello"
    finally:
        consumer.close()


def test_confluent_kafka_gets_an_authorization_error(guarded: Secured) -> None:
    with guarded.admin() as admin:
        admin.create_topic("unreadable")
        admin.create_acls(
            Acl("User:ann", AclOperation.DESCRIBE, kind, "unreadable")
            for kind in (ResourceType.TOPIC, ResourceType.GROUP)
        )
    consumer = Consumer(librdkafka(guarded, "SASL_SSL", "PLAIN") | {"group.id": "unreadable"})
    consumer.assign([TopicPartition("unreadable", 0, 0)])
    try:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error().code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    finally:
        consumer.close()


def told(config: dict[str, Any]) -> list[int]:
    """The connection errors reported to a client."""
    errors: list[int] = []
    producer = Producer(config | {"error_cb": lambda error: errors.append(error.code())})
    deadline_s = time.monotonic() + PATIENCE_S
    while not errors and time.monotonic() < deadline_s:
        producer.poll(0.1)
    return errors


def test_confluent_kafka_gets_an_authentication_error(broker: Secured) -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-512"):
        assert KafkaError._AUTHENTICATION in told(librdkafka(broker, "SASL_SSL", mechanism, "wrong"))


def test_confluent_kafka_with_a_client_certificate(broker: Secured) -> None:
    files = broker.authority.client("Carl")
    config = librdkafka(broker, "SSL", "") | {
        "ssl.certificate.location": str(files.cert),
        "ssl.key.location": str(files.key),
    }
    producer = Producer(config)
    producer.produce("by-certificate", b"hello")
    assert producer.flush(PATIENCE_S) == 0


# kafka-python


class Token(AbstractTokenProvider):
    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make

    def token(self) -> str:
        return self._make()


def kafka_python(broker: Secured, protocol: str, mechanism: str) -> dict[str, Any]:
    config: dict[str, Any] = {
        "bootstrap_servers": broker.address(protocol),
        "security_protocol": protocol,
        "sasl_mechanism": mechanism,
    }
    if protocol.endswith("SSL"):
        config["ssl_cafile"] = str(broker.authority.cert)
    if mechanism == "OAUTHBEARER":
        return config | {"sasl_oauth_token_provider": Token(lambda: broker.issuer.token("ann"))}
    return config | {"sasl_plain_username": "ann", "sasl_plain_password": PASSWORDS["ann"]}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
def test_kafka_python_writes_and_reads(broker: Secured, protocol: str, mechanism: str) -> None:
    topic = f"python-{protocol}-{mechanism}"
    config = kafka_python(broker, protocol, mechanism)
    producer = KafkaProducer(**config)
    producer.send(topic, b"hello").get(PATIENCE_S)
    producer.close()
    consumer = KafkaConsumer(
        topic, **config, group_id=None, auto_offset_reset="earliest", consumer_timeout_ms=PATIENCE_S * 1000
    )
    try:
        assert next(consumer).value == b"hello"
    finally:
        consumer.close()


# aiokafka


class AioToken(AioTokenProvider):
    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make

    async def token(self) -> str:
        return self._make()


def aiokafka(broker: Secured, protocol: str, mechanism: str) -> dict[str, Any]:
    config: dict[str, Any] = {
        "bootstrap_servers": broker.address(protocol),
        "security_protocol": protocol,
        "sasl_mechanism": mechanism,
    }
    if protocol.endswith("SSL"):
        config["ssl_context"] = ssl.create_default_context(cafile=str(broker.authority.cert))
    if mechanism == "OAUTHBEARER":
        return config | {"sasl_oauth_token_provider": AioToken(lambda: broker.issuer.token("ann"))}
    return config | {"sasl_plain_username": "ann", "sasl_plain_password": PASSWORDS["ann"]}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
def test_aiokafka_writes_and_reads(broker: Secured, protocol: str, mechanism: str) -> None:
    topic = f"aio-{protocol}-{mechanism}"

    async def scenario() -> bytes | None:
        config = aiokafka(broker, protocol, mechanism)
        producer = AIOKafkaProducer(**config)
        await producer.start()
        await producer.send_and_wait(topic, b"hello")
        await producer.stop()
        consumer = AIOKafkaConsumer(topic, **config, auto_offset_reset="earliest")
        await consumer.start()
        try:
            message = await asyncio.wait_for(consumer.getone(), PATIENCE_S)
        finally:
            await consumer.stop()
        value: bytes | None = message.value
        return value

    assert asyncio.run(scenario()) == b"hello"
