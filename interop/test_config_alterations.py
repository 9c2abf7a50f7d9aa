"""The same changes of configs here and on a real broker: what is refused, with which code, and what comes out."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

import pytest

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.kafka_clients import Admin
from interop.kafka_wire import ask
from ottla.broker.configs.alter import (
    Operation,
    Resource,
    broker_resource,
    cluster_default_resource,
    incremental_edit,
    new_topic_configs,
    replacing_edit,
    topic_resource,
)
from ottla.broker.configs.definition import ConfigType
from ottla.broker.configs.definitions import TOPIC_DEFINITIONS
from ottla.broker.configs.describe import ConfigEntry, describe_broker, describe_cluster_default, describe_topic
from ottla.broker.configs.layers import BrokerConfigs
from ottla.core.errors import ApiError, ErrorCode
from ottla.wire.messages import alter_configs
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = Operation
POLICY, THROTTLED = "cleanup.policy", "leader.replication.throttled.replicas"
OURS: Final = BrokerConfigs()
NAME = "altered"
NODE_ID, ALL_BROKERS = "1", ""
DYNAMIC_TOPIC_CONFIG = 1
PATIENCE_S = 10
OK, REFUSED, MALFORMED = ErrorCode.NONE, ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST

Seen = TypeVar("Seen")
Op = tuple[int, str, str | None]

NUMBERS = [
    *map(str, (-131073, -131072, -3, -2, -1, 0, 1, 2, 3, 4, 9, 10, 13, 14, 17, 18, 22, 23, 1024)),
    *map(str, ((1 << 20) - 1, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, 1 << 63, -(1 << 63) - 1)),
    *("1.5", "1e3", "0x10", "1_000", "abc", "+5", "05", " 5 ", ""),
]
TEXTS = {
    ConfigType.BOOLEAN: ["", "true", "TRUE", " false ", "yes", "1", "0"],
    ConfigType.INT: NUMBERS,
    ConfigType.LONG: NUMBERS,
    ConfigType.DOUBLE: ["", "0", "1", "0.5", " 1e-1 ", "-0.1", "1.1", ".5", "1.", "Infinity", "1e999", "abc", "1_0"],
    ConfigType.STRING: ["", "producer", "uncompressed", "none", "gzip", " zstd ", "ZSTD", "CreateTime", "createtime"],
    ConfigType.LIST: [
        *("", " delete ", "delete,compact", "delete,delete", "Delete", "delete,,compact", "none"),
        *("*", "1:2", " 1:2 , 3:4 ", "1:2,*", "a:b", "1:2:3"),
    ],
}
TOO_SMALL_FOR_US = ["-131073", "-131072", "-3", "-2", "-1", "0", "1", "2", "3", "4", "9", "10", "13", "14", "17", "18"]
ONLY_OURS = ("encryption.key.version", "confluent.", "ottla.")
OURS_REFUSES = {
    ("internal.segment.bytes", text): "a segment of less than 1024 bytes is of no use"
    for text in (*TOO_SMALL_FOR_US, "22", "23", "+5", "05", " 5 ")
}


@pytest.fixture(scope="module")
def bootstrap(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with KafkaBroker(kafka, tmp_path_factory.mktemp("kafka-alterations")) as started:
        Admin(started.bootstrap).create(NAME)
        yield started.bootstrap


def alterable(operations: Sequence[Op]) -> tuple[AlterableConfig, ...]:
    return tuple(AlterableConfig(name=name, config_operation=code, value=value) for code, name, value in operations)


def theirs(
    bootstrap: str, operations: Sequence[Op], kind: int = TOPIC, name: str = NAME, *, validate_only: bool = True
) -> ErrorCode:
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=alterable(operations))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    [response] = ask(bootstrap, request, version=1).responses
    return ErrorCode(response.error_code)


def ours(operations: Sequence[Op], resource: Resource | None = None) -> ErrorCode:
    try:
        incremental_edit(resource or topic_resource(OURS), alterable(operations))({})
    except ApiError as refused:
        return refused.code
    return OK


def test_each_topic_config_accepts_the_same_values_as_in_kafka(bootstrap: str) -> None:
    others = {
        (definition.name, text)
        for definition in TOPIC_DEFINITIONS.values()
        if not definition.name.startswith(ONLY_OURS)
        for text in TEXTS[definition.type]
        if ours([(SET, definition.name, text)]) != theirs(bootstrap, [(SET, definition.name, text)])
    }

    assert others == set(OURS_REFUSES)


@pytest.mark.parametrize(
    "operations",
    [
        [],
        [(SET, "rentention.ms", "5")],
        [(SET, "log.retention.ms", "5")],
        [(SET, "message.format.version", "3.0")],
        [(DELETE, "rentention.ms", None)],
        [(DELETE, "retention.ms", "5")],
        [(SET, "retention.ms", None)],
        [(APPEND, POLICY, None)],
        [(APPEND, POLICY, "compact")],
        [(APPEND, POLICY, "purge")],
        [(APPEND, POLICY, "")],
        [(APPEND, "retention.ms", "5")],
        [(SUBTRACT, "retention.ms", "5")],
        [(APPEND, "rentention.ms", "5")],
        [(SUBTRACT, POLICY, "delete")],
        [(SUBTRACT, POLICY, "purge")],
        [(SUBTRACT, THROTTLED, "1:2")],
        [(SET, "retention.ms", "5"), (SET, "retention.ms", "6")],
        [(SET, "retention.ms", "5"), (DELETE, "retention.ms", None)],
        [(SET, "retention.ms", "5"), (SET, "segment.ms", "x")],
        [(SET, "min.compaction.lag.ms", "10"), (SET, "max.compaction.lag.ms", "5")],
        [(SET, "min.compaction.lag.ms", "10"), (SET, "max.compaction.lag.ms", "10")],
        [(SET, "local.retention.ms", "50"), (SET, "retention.ms", "5")],
        [(SET, "remote.log.copy.disable", "true"), (SET, "remote.log.delete.on.disable", "true")],
        [(SET, "remote.storage.enable", "true")],
        [(SET, "min.insync.replicas", "5")],
    ],
)
def test_a_change_of_a_topics_configs_gets_kafkas_code(bootstrap: str, operations: list[Op]) -> None:
    assert ours(operations) == theirs(bootstrap, operations)


def test_an_unknown_operation_is_not_an_internal_error(bootstrap: str) -> None:
    unknown = [(7, "retention.ms", "5")]

    assert (ours(unknown), theirs(bootstrap, unknown)) == (MALFORMED, ErrorCode.UNKNOWN_SERVER_ERROR)


BROKER_CHANGES: tuple[tuple[Op, str, ErrorCode, ErrorCode], ...] = (  # the change, whose, our answer, theirs
    ((SET, "log.retention.ms", "5"), NODE_ID, OK, OK),
    ((SET, "log.retention.ms", "5"), ALL_BROKERS, OK, OK),
    ((SET, "log.retention.ms", "x"), NODE_ID, MALFORMED, MALFORMED),
    ((SET, "log.retention.ms", "x"), ALL_BROKERS, MALFORMED, MALFORMED),
    ((SET, "log.segment.bytes", "1024"), NODE_ID, MALFORMED, MALFORMED),
    ((SET, "node.id", "7"), NODE_ID, MALFORMED, MALFORMED),
    ((SET, "auto.create.topics.enable", "true"), ALL_BROKERS, MALFORMED, MALFORMED),
    ((DELETE, "auto.create.topics.enable", None), NODE_ID, OK, OK),
    ((APPEND, "log.cleanup.policy", "compact"), NODE_ID, OK, OK),
    ((APPEND, "log.retention.ms", "5"), NODE_ID, REFUSED, REFUSED),
    ((SET, "leader.replication.throttled.rate", "5"), NODE_ID, OK, OK),
    ((SET, "producer.id.expiration.ms", "5"), NODE_ID, OK, OK),
    # A name that does not exist is a slip; Kafka stores it, for its plug-ins.
    ((SET, "log.retenshun.ms", "5"), NODE_ID, OK, OK),
    # Kafka keeps it the same for all brokers, for its eligible leader replicas.
    ((SET, "min.insync.replicas", "2"), NODE_ID, OK, REFUSED),
    # As for topics; Kafka checks it for topics only.
    ((SET, "log.retention.ms", "-7"), NODE_ID, MALFORMED, OK),
)


@pytest.mark.parametrize(("change", "name", "our_code", "their_code"), BROKER_CHANGES)
def test_a_change_of_a_brokers_configs_gets_the_listed_code(
    bootstrap: str, change: Op, name: str, our_code: ErrorCode, their_code: ErrorCode
) -> None:
    resource = broker_resource(OURS) if name == NODE_ID else cluster_default_resource(OURS)

    assert ours([change], resource) == our_code
    assert theirs(bootstrap, [change], BROKER, name) == their_code


def test_defaults_that_contradict_each_other_are_refused_before_they_make_every_new_topic_fail(bootstrap: str) -> None:
    lags = [(SET, "log.cleaner.min.compaction.lag.ms", "10"), (SET, "log.cleaner.max.compaction.lag.ms", "5")]

    assert ours(lags, cluster_default_resource(OURS)) == MALFORMED
    assert theirs(bootstrap, lags, BROKER, ALL_BROKERS) == OK


def once_carried_out(expected: Seen, theirs: Callable[[], Seen]) -> Seen:
    """The broker's description, once it is as expected or after a timeout: changes apply after the response."""
    deadline = time.monotonic() + PATIENCE_S
    while (seen := theirs()) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    return seen


def overridden(bootstrap: str, name: str) -> dict[str, str]:
    resource = DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=None)
    [result] = ask(bootstrap, DescribeConfigsRequest(resources=(resource,)), version=4).results
    return {one.name: one.value for one in result.configs if one.config_source == DYNAMIC_TOPIC_CONFIG}


def test_a_sequence_of_changes_leaves_the_same_configs_as_in_kafka(bootstrap: str) -> None:
    steps: list[list[Op]] = [
        [(SET, "retention.ms", " 05 "), (SET, "preallocate", "TRUE"), (SET, "min.cleanable.dirty.ratio", "1e-1")],
        [(APPEND, POLICY, "compact")],
        [(APPEND, POLICY, "compact"), (DELETE, "retention.ms", None)],
        [(SUBTRACT, POLICY, "delete"), (APPEND, THROTTLED, "1:2,3:4,1:2")],
        [(SUBTRACT, POLICY, "compact"), (SUBTRACT, THROTTLED, "3:4,9:9")],
        [(APPEND, POLICY, "delete"), (SUBTRACT, "follower.replication.throttled.replicas", "1:2")],
        [(DELETE, POLICY, None), (DELETE, THROTTLED, None), (SET, "compression.type", " zstd ")],
        [(SET, "internal.segment.bytes", "4096")],
    ]
    Admin(bootstrap).create("stepwise")
    here: dict[str, str] = {}
    for step in steps:
        here = dict(incremental_edit(topic_resource(OURS), alterable(step))(here))
        assert theirs(bootstrap, step, TOPIC, "stepwise", validate_only=False) == OK
        there = once_carried_out(here, lambda: overridden(bootstrap, "stepwise"))
        assert (step, here) == (step, there)


REPLACEMENTS: tuple[tuple[tuple[str, str | None], ...], ...] = (
    (("retention.ms", "5"), (POLICY, "compact")),
    (("segment.ms", "5"),),
    (("segment.ms", "5"), ("segment.ms", "6")),
    (("segment.ms", None),),
    (("segmentms", "5"),),
    (("segment.ms", "x"),),
    (),
)


def test_alter_configs_leaves_the_same_configs_as_in_kafka(bootstrap: str) -> None:
    Admin(bootstrap).create("replaced")
    here: dict[str, str] = {}
    for settings in REPLACEMENTS:
        configs = tuple(alter_configs.AlterableConfig(name=name, value=value) for name, value in settings)
        code = OK
        try:
            here = dict(replacing_edit(topic_resource(OURS), configs)(here))
        except ApiError as refused:
            code = refused.code
        resource = alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name="replaced", configs=configs)
        request = alter_configs.AlterConfigsRequest(resources=(resource,), validate_only=False)
        [response] = ask(bootstrap, request, version=2).responses
        there = once_carried_out(here, lambda: overridden(bootstrap, "replaced"))
        assert (settings, code, here) == (settings, response.error_code, there)


@pytest.mark.parametrize(
    "settings",
    [
        [],
        [("retention.ms", "5"), (POLICY, "")],
        [("retention.ms", "5"), ("retention.ms", "6")],
        [("retention.ms", None)],
        [("retention.ms", "x")],
        [("nope", "x")],
        [("min.compaction.lag.ms", "7"), ("max.compaction.lag.ms", "6")],
    ],
)
def test_a_new_topic_gets_kafkas_code_and_configs(bootstrap: str, settings: list[tuple[str, str | None]]) -> None:
    configs = tuple(CreatableTopicConfig(name=name, value=value) for name, value in settings)
    name = f"created-{abs(hash(tuple(settings)))}"
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=configs)
    [result] = ask(bootstrap, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000, validate_only=False), 7).topics
    code, here = OK, {}
    try:
        here = new_topic_configs(OURS, configs)
    except ApiError as refused:
        code = refused.code

    assert code == result.error_code
    there = {one.name: one.value for one in result.configs or () if one.config_source == DYNAMIC_TOPIC_CONFIG}
    assert here == there


Told = list[tuple[str | None, int, list[tuple[str, str | None, int]]]]  # a value, its source, its synonyms


def told(bootstrap: str, kind: int, name: str, key: str) -> Told:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=(key,))
    [result] = ask(bootstrap, DescribeConfigsRequest(resources=(resource,), include_synonyms=True), version=4).results
    return [
        (config.value, config.config_source, [(one.name, one.value, one.source) for one in config.synonyms])
        for config in result.configs
    ]


def told_by_us(entries: list[ConfigEntry]) -> Told:
    return [
        (entry.value, entry.source, [(one.name, one.value, one.source) for one in entry.synonyms]) for entry in entries
    ]


@pytest.mark.parametrize(
    ("topic_key", "broker_key", "low", "middle", "high"),
    [
        ("retention.ms", "log.retention.ms", "3", "2", "1"),
        ("max.message.bytes", "message.max.bytes", "3", "2", "1"),
        ("compression.type", "compression.type", "gzip", "lz4", "zstd"),
        ("cleanup.policy", "log.cleanup.policy", "compact", "compact,delete", "delete"),
        ("segment.jitter.ms", "log.roll.jitter.ms", "3", "2", "1"),
    ],
)
def test_a_config_set_at_many_levels_is_described_as_in_kafka(
    bootstrap: str, topic_key: str, broker_key: str, low: str, middle: str, high: str
) -> None:
    """Set for all brokers, then for this one, then for the topic, and described each time."""
    steps = [(BROKER, ALL_BROKERS, broker_key, low), (BROKER, NODE_ID, broker_key, middle)]
    steps += [(TOPIC, NAME, topic_key, high)]
    everywhere: dict[str, str] = {}
    here: dict[str, str] = {}
    of_topic: dict[str, str] = {}
    for (kind, name, key, value), layer in zip(steps, (everywhere, here, of_topic), strict=True):
        layer[key] = value
        assert theirs(bootstrap, [(SET, key, value)], kind, name, validate_only=False) == OK
        broker = BrokerConfigs(dynamic_default=everywhere, dynamic=here)
        ours_now = [
            told_by_us(describe_topic(of_topic, broker, [topic_key])),
            told_by_us(describe_broker(broker, [broker_key])),
            told_by_us(describe_cluster_default(broker, [broker_key])),
        ]
        assert ours_now == once_carried_out(
            ours_now,
            lambda: [
                told(bootstrap, TOPIC, NAME, topic_key),
                told(bootstrap, BROKER, NODE_ID, broker_key),
                told(bootstrap, BROKER, ALL_BROKERS, broker_key),
            ],
        )
    for kind, name, key, _ in steps:
        assert theirs(bootstrap, [(DELETE, key, None)], kind, name, validate_only=False) == OK
