"""Our table of configs compared with a real broker's: names, types, defaults and flags."""

import re
from collections.abc import Iterator, Mapping
from typing import cast

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.kafka_clients import QUIET, TIMEOUT_S, Admin
from interop.kafka_wire import ask
from ottla.broker.configs import describe
from ottla.broker.configs.definition import Definition, Definitions
from ottla.broker.configs.definitions import TOPIC_DEFINITIONS, broker_definitions
from ottla.broker.configs.layers import BrokerConfigs
from ottla.broker.configs.values import to_text
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)

TOPIC, BROKER = 2, 4
NODE_ID = "1"
DEFAULT_CONFIG = 5
WORDS_THAT_MAY_AGREE = 8
Described = Mapping[str, DescribeConfigsResourceResult]

OTHER_DEFAULTS = {
    "flush.ms": "we flush in the background, by default every second, and say so",
    "log.flush.interval.ms": "the same",
    "sasl.enabled.mechanisms": "Kafka's is GSSAPI, which we do not speak",
    "group.initial.rebalance.delay.ms": "on a laptop the wait is all one notices",
    "max.connections": "we set a limit",
    "max.connections.per.ip": "we set a limit",
    "offsets.topic.num.partitions": "one node needs no more",
    "offsets.topic.replication.factor": "one node has no more",
    "transaction.state.log.num.partitions": "one node needs no more",
    "transaction.state.log.replication.factor": "one node has no more",
    "transaction.state.log.min.isr": "one node has no more",
    "share.coordinator.state.topic.num.partitions": "one node needs no more",
    "node.id": "Kafka's has to be set",
    "broker.id": "Kafka's has to be set",
    "process.roles": "Kafka's has to be set",
    "log.dirs": "Kafka's has to be set, or log.dir counts",
    "listeners": "only localhost is served by default",
}
OTHER_SYNONYMS = {
    "flush.ms": "its broker config has a default here, see above",
}
DYNAMIC_ONLY_IN_KAFKA = {
    "listener.security.protocol.map": "listeners are opened at the start",
    "listeners": "listeners are opened at the start",
    "max.connections": "limits of connections are read at the start",
    "max.connections.per.ip": "limits of connections are read at the start",
    "max.connections.per.ip.overrides": "limits of connections are read at the start",
    "sasl.enabled.mechanisms": "security is set up at the start",
    "ssl.client.auth": "security is set up at the start",
    "ssl.enabled.protocols": "security is set up at the start",
    "ssl.key.password": "security is set up at the start",
}
HIDDEN = {
    "broker.draining": "Kafka has no such thing",
    "confluent.key.schema.validation": "Kafka has no such thing",
    "confluent.key.subject.name.strategy": "Kafka has no such thing",
    "confluent.value.schema.validation": "Kafka has no such thing",
    "confluent.value.subject.name.strategy": "Kafka has no such thing",
    "encryption.key.version": "Kafka has no such thing",
    "ottla.schema.validation.dead.letter.topic": "Kafka has no such thing",
    "ottla.table.allow.gaps": "Kafka has no such thing",
    "ottla.table.columns": "Kafka has no such thing",
    "ottla.table.commit.interval.ms": "Kafka has no such thing",
    "ottla.table.enable": "Kafka has no such thing",
    "ottla.table.mode": "Kafka has no such thing",
    "ottla.table.partition.by": "Kafka has no such thing",
    "ottla.table.subject": "Kafka has no such thing",
    "ottla.table.values": "Kafka has no such thing",
    "internal.segment.bytes": "Kafka too shows it only where it is set",
    "leader.replication.throttled.rate": "Kafka too shows it only where it is set",
    "follower.replication.throttled.rate": "Kafka too shows it only where it is set",
    "replica.alter.log.dirs.io.max.bytes.per.second": "Kafka too shows it only where it is set",
}


@pytest.fixture(scope="module")
def broker(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(kafka, tmp_path_factory.mktemp("kafka-configs")) as started:
        Admin(started.bootstrap).create("plain")
        yield started


@pytest.fixture(scope="module")
def their_topic(broker: KafkaBroker) -> Described:
    return described(broker, TOPIC, "plain")


@pytest.fixture(scope="module")
def their_broker(broker: KafkaBroker) -> Described:
    return described(broker, BROKER, NODE_ID)


def described(broker: KafkaBroker, kind: int, name: str) -> Described:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True, include_documentation=True)
    [result] = ask(broker.bootstrap, request, version=4).results
    assert result.error_code == 0, result.error_message
    return {config.name: config for config in result.configs}


def seen_by_librdkafka(broker: KafkaBroker, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    client = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    [future] = client.describe_configs([ConfigResource(kind, name)]).values()
    return dict(future.result(TIMEOUT_S))


def shown(definitions: Definitions) -> list[Definition]:
    return [one for one in definitions.values() if not one.is_hidden]


def default_of(definition: Definition) -> str | None:
    return None if definition.default is None else to_text(definition.default)


def their_default(config: DescribeConfigsResourceResult) -> str | None:
    """The default value; a config without a default has no such synonym."""
    for synonym in config.synonyms:
        if synonym.source == DEFAULT_CONFIG and synonym.name == config.name:
            return str(synonym.value)
    return config.value if config.config_source == DEFAULT_CONFIG else None


def test_a_topic_has_kafkas_configs_and_no_others(their_topic: Described) -> None:
    assert {one.name for one in shown(TOPIC_DEFINITIONS)} == set(their_topic)


def test_every_broker_config_exists_in_kafka(their_broker: Described) -> None:
    assert {one.name for one in shown(broker_definitions())} - set(their_broker) == set()


def test_hidden_configs_are_hidden_in_kafka(their_topic: Described, their_broker: Described) -> None:
    hidden = [one.name for one in (*TOPIC_DEFINITIONS.values(), *broker_definitions().values()) if one.is_hidden]

    assert set(hidden) == set(HIDDEN)
    assert not set(hidden) & {*their_topic, *their_broker}


def test_types_are_kafkas(their_topic: Described, their_broker: Described) -> None:
    for definitions, theirs in ((TOPIC_DEFINITIONS, their_topic), (broker_definitions(), their_broker)):
        for ours in shown(definitions):
            assert (ours.name, ours.type) == (ours.name, theirs[ours.name].config_type)


def test_a_topics_defaults_are_kafkas(their_topic: Described) -> None:
    others = {one.name for one in shown(TOPIC_DEFINITIONS) if default_of(one) != their_topic[one.name].value}

    assert others == {name for name in OTHER_DEFAULTS if name in TOPIC_DEFINITIONS}


def test_a_brokers_defaults_are_kafkas(their_broker: Described) -> None:
    definitions = shown(broker_definitions())
    others = {one.name for one in definitions if default_of(one) != their_default(their_broker[one.name])}

    assert others == {name for name in OTHER_DEFAULTS if name in broker_definitions()}


def test_sensitive_configs_are_those_of_kafka(their_topic: Described, their_broker: Described) -> None:
    for definitions, theirs in ((TOPIC_DEFINITIONS, their_topic), (broker_definitions(), their_broker)):
        for ours in shown(definitions):
            assert (ours.name, ours.is_sensitive) == (ours.name, theirs[ours.name].is_sensitive)


def test_dynamic_configs_are_dynamic_in_kafka(their_topic: Described, their_broker: Described) -> None:
    of_brokers = shown(broker_definitions())
    others = {one.name for one in of_brokers if one.is_read_only != their_broker[one.name].read_only}

    assert others == set(DYNAMIC_ONLY_IN_KAFKA)
    assert not any(one.is_read_only for one in TOPIC_DEFINITIONS.values())
    assert not any(config.read_only for config in their_topic.values())


def test_a_topic_config_follows_the_broker_config_that_it_follows_in_kafka(their_topic: Described) -> None:
    ours = {entry.name: entry for entry in describe.describe_topic({}, BrokerConfigs())}
    for name, theirs in their_topic.items():
        if name not in OTHER_SYNONYMS:
            defaults = [one for one in theirs.synonyms if one.source == DEFAULT_CONFIG]
            expected = [(one.name, one.value) for one in defaults]
            assert (name, [(one.name, one.value) for one in ours[name].synonyms]) == (name, expected)


def test_librdkafka_sees_the_same_of_kafka_as_our_own_codec(broker: KafkaBroker, their_topic: Described) -> None:
    seen = seen_by_librdkafka(broker, ResourceType.TOPIC, "plain")

    assert set(seen) == set(their_topic)
    for name, entry in seen.items():
        theirs = their_topic[name]
        assert (name, entry.value, cast("int", entry.source)) == (name, theirs.value, theirs.config_source)
        assert (name, entry.is_read_only, entry.is_sensitive) == (name, theirs.read_only, theirs.is_sensitive)


def test_our_documentation_is_in_our_own_words(their_topic: Described, their_broker: Described) -> None:
    theirs = [one.documentation or "" for one in (*their_topic.values(), *their_broker.values())]
    their_runs = {run for text in theirs for run in runs_of_words(text)}
    for ours in (*TOPIC_DEFINITIONS.values(), *broker_definitions().values()):
        assert (ours.name, runs_of_words(ours.documentation) & their_runs) == (ours.name, set())


def runs_of_words(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z0-9.]+", text.lower())
    return {tuple(words[at : at + WORDS_THAT_MAY_AGREE]) for at in range(len(words) - WORDS_THAT_MAY_AGREE + 1)}
