from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.config import BrokerConfig
from ottla.broker.configs.definition import ConfigType
from ottla.broker.configs.definitions import TOPIC_DEFINITIONS, broker_definitions
from ottla.broker.configs.describe import (
    ConfigEntry,
    Synonym,
    describe_broker,
    describe_cluster_default,
    describe_topic,
)
from ottla.broker.configs.layers import BrokerConfigs, ConfigSource
from ottla.broker.configs.replies import for_create, for_describe
from ottla.broker.configs.static import default_settings, security_settings, share_settings, static_settings
from ottla.broker.configs.values import to_text
from ottla.broker.settings import Settings
from ottla.core.ids import Address
from ottla.groups.config import GroupConfig
from ottla.net.config import NetConfig
from ottla.net.security_config import SecurityConfig
from ottla.storage.config import LogConfig
from ottla.wire.messages.describe_configs import DescribeConfigsSynonym

TOPIC = ConfigSource.DYNAMIC_TOPIC_CONFIG
HERE = ConfigSource.DYNAMIC_BROKER_CONFIG
EVERYWHERE = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
STATIC = ConfigSource.STATIC_BROKER_CONFIG
DEFAULT = ConfigSource.DEFAULT_CONFIG

UNSET = BrokerConfigs()


def only(entries: list[ConfigEntry]) -> ConfigEntry:
    [entry] = entries
    return entry


def test_a_topic_without_configs_is_described_with_every_default() -> None:
    described = {entry.name: entry for entry in describe_topic({}, UNSET)}

    assert described.keys() == {name for name, each in TOPIC_DEFINITIONS.items() if not each.is_hidden}
    for name, entry in described.items():
        definition = TOPIC_DEFINITIONS[name]
        assert definition.default is not None
        assert entry.value == to_text(definition.default)
        assert entry.is_default
        assert (entry.is_read_only, entry.is_sensitive) == (False, False)
        assert (entry.type, entry.documentation) == (definition.type, definition.documentation)


def test_synonyms_list_the_overridden_values() -> None:
    broker = BrokerConfigs(
        log=LogConfig(max_message_bytes=4),
        dynamic_default={"message.max.bytes": "3"},
        dynamic={"message.max.bytes": "2"},
    )
    below = (
        Synonym("message.max.bytes", "2", HERE),
        Synonym("message.max.bytes", "3", EVERYWHERE),
        Synonym("message.max.bytes", "4", STATIC),
        Synonym("message.max.bytes", "1048588", DEFAULT),
    )

    set_by_topic = only(describe_topic({"max.message.bytes": "1"}, broker, ["max.message.bytes"]))
    inherited = only(describe_topic({}, broker, ["max.message.bytes"]))
    of_broker = only(describe_broker(broker, ["message.max.bytes"]))

    assert (set_by_topic.value, set_by_topic.source) == ("1", TOPIC)
    assert set_by_topic.synonyms == (Synonym("max.message.bytes", "1", TOPIC), *below)
    assert (inherited.value, inherited.source, inherited.synonyms) == ("2", HERE, below)
    assert (of_broker.value, of_broker.source, of_broker.synonyms) == ("2", HERE, below)


def test_hours_apply_only_where_milliseconds_are_not_set() -> None:
    keys = ["log.retention.ms", "log.retention.hours"]
    unset = describe_broker(UNSET, keys)
    is_set = describe_broker(BrokerConfigs(dynamic={"log.retention.ms": "5"}), keys)

    assert [(one.name, one.value, one.synonyms) for one in unset] == [
        ("log.retention.hours", "168", (Synonym("log.retention.hours", "168", DEFAULT),)),
        ("log.retention.ms", None, ()),
    ]
    assert is_set[1].synonyms == (
        Synonym("log.retention.ms", "5", HERE),
        Synonym("log.retention.hours", "168", DEFAULT),
    )
    assert only(describe_topic({}, UNSET, ["retention.ms"])).value == "604800000"


def test_a_config_without_a_broker_default_has_only_itself_as_synonym() -> None:
    name = "leader.replication.throttled.replicas"

    assert only(describe_topic({}, UNSET, [name])).synonyms == ()
    assert only(describe_topic({name: "*"}, UNSET, [name])).synonyms == (Synonym(name, "*", TOPIC),)


@pytest.mark.parametrize(
    ("log", "flush_messages", "flush_ms"),
    [
        (LogConfig(), ("9223372036854775807", DEFAULT), ("1000", DEFAULT)),
        (LogConfig(flush_interval_ms=50), ("9223372036854775807", DEFAULT), ("50", STATIC)),
        (LogConfig(flush="os"), ("9223372036854775807", DEFAULT), ("9223372036854775807", STATIC)),
        (LogConfig(flush="ack"), ("1", STATIC), ("9223372036854775807", STATIC)),
    ],
)
def test_the_flush_policy_is_described_in_kafkas_configs(
    log: LogConfig, flush_messages: tuple[str, ConfigSource], flush_ms: tuple[str, ConfigSource]
) -> None:
    described = describe_topic({}, BrokerConfigs(log=log), ["flush.messages", "flush.ms"])

    assert [(one.value, one.source) for one in described] == [flush_messages, flush_ms]


def test_start_up_settings_are_static_unless_they_equal_the_default() -> None:
    log = LogConfig(segment_bytes=4096, cleanup_policy="compact,delete", retention_ms=5, producer_id_expiration_ms=6)
    set_here = {one.name: one.value for one in describe_broker(BrokerConfigs(log=log)) if one.source is STATIC}

    assert set_here == {
        "log.segment.bytes": "4096",
        "log.cleanup.policy": "compact,delete",
        "log.retention.ms": "5",
        "producer.id.expiration.ms": "6",
    }


@pytest.mark.parametrize("keys", [None, [], ()])
def test_null_keys_describe_every_config(keys: list[str] | None) -> None:
    assert describe_topic({}, UNSET, keys) == describe_topic({}, UNSET)
    assert len(describe_broker(UNSET, keys)) == sum(not one.is_hidden for one in broker_definitions().values())


def test_unknown_keys_are_left_out_and_repeated_keys_described_once() -> None:
    assert describe_topic({}, UNSET, ["nope"]) == []
    assert [one.name for one in describe_topic({}, UNSET, ["nope", "segment.ms", "segment.ms"])] == ["segment.ms"]
    assert describe_broker(UNSET, ["retention.ms"]) == []


def test_a_hidden_config_is_described_once_it_is_set() -> None:
    rate = "leader.replication.throttled.rate"

    assert describe_topic({}, UNSET, ["internal.segment.bytes"]) == []
    assert only(describe_topic({"internal.segment.bytes": "9999"}, UNSET, ["internal.segment.bytes"])).value == "9999"
    assert describe_broker(UNSET, [rate]) == []
    assert only(describe_broker(BrokerConfigs(dynamic={rate: "5"}), [rate])).value == "5"


def test_a_secret_is_never_described() -> None:
    broker = BrokerConfigs(static={"ssl.key.password": "hunter2"})
    entry = only(describe_broker(broker, ["ssl.key.password"]))

    assert (entry.value, entry.is_sensitive, entry.source) == (None, True, STATIC)
    assert entry.synonyms == (Synonym("ssl.key.password", None, STATIC),)
    assert "hunter2" not in repr(describe_broker(broker))


def test_a_config_stored_by_another_release_is_described_without_its_value() -> None:
    entry = only(describe_topic({"old.secret": "hunter2"}, UNSET, ["old.secret"]))

    assert (entry.value, entry.type, entry.is_sensitive, entry.source) == (None, ConfigType.UNKNOWN, True, TOPIC)
    assert only(describe_broker(BrokerConfigs(dynamic={"old": "x"}), ["old"])).source is HERE
    assert [one.name for one in describe_cluster_default(BrokerConfigs(dynamic_default={"old": "x"}))] == ["old"]


def test_the_cluster_default_lists_only_its_own_configs() -> None:
    broker = BrokerConfigs(
        static={"log.roll.ms": "1"},
        dynamic_default={"log.retention.ms": "2", "log.segment.bytes": "1048576"},
        dynamic={"log.retention.ms": "3"},
    )
    described = describe_cluster_default(broker)

    assert [(one.name, one.value, one.source) for one in described] == [
        ("log.retention.ms", "2", EVERYWHERE),
        ("log.segment.bytes", "1048576", EVERYWHERE),
    ]
    assert described[0].synonyms == (Synonym("log.retention.ms", "2", EVERYWHERE),)
    assert describe_cluster_default(broker, ["log.roll.ms"]) == []


def test_broker_settings_are_described_under_kafkas_names() -> None:
    config = BrokerConfig(node_id=7, data_dir=Path("/data"), default_partitions=3, auto_create_topics=False)
    groups = GroupConfig(max_session_timeout_ms=60_000, initial_rebalance_delay_ms=3000, max_size=10)
    static = static_settings(config, NetConfig(advertised="kafka:1"), groups, Address("127.0.0.1", 5))
    described = {one.name: one for one in describe_broker(BrokerConfigs(static=static))}

    assert {one.name for one in described.values() if one.source is STATIC} == static.keys()
    assert described["node.id"].value == described["broker.id"].value == "7"
    assert described["log.dirs"].value == "/data"
    assert described["num.partitions"].value == "3"
    assert described["auto.create.topics.enable"].value == "false"
    assert described["listeners"].value == "PLAINTEXT://127.0.0.1:5"
    assert described["advertised.listeners"].value == "PLAINTEXT://kafka:1"
    assert described["group.max.session.timeout.ms"].value == "60000"
    assert described["group.initial.rebalance.delay.ms"].synonyms == (
        Synonym("group.initial.rebalance.delay.ms", "3000", STATIC),
        Synonym("group.initial.rebalance.delay.ms", "0", DEFAULT),
    )
    assert described["group.max.size"].value == "10"
    assert described["offsets.topic.replication.factor"].value == "1"
    assert described["broker.rack"].value is None
    assert described["node.id"].is_read_only


def test_unset_configs_are_described_with_the_defaults_in_effect() -> None:
    usual = default_settings()
    described = {one.name: one for one in describe_broker(UNSET)}

    assert usual.keys() <= described.keys()
    for name, value in usual.items():
        assert (name, described[name].value) == (name, None if value is None else to_text(value))
    assert {one.source for one in described.values()} == {DEFAULT}
    alone = Settings().completed(is_member=False)
    assert static_settings(alone.broker, NetConfig(), GroupConfig(), Address("127.0.0.1", 9092)) == {}
    assert share_settings(alone.share) == {}


def test_synonyms_and_documentation_are_sent_on_request() -> None:
    entries = describe_topic({"preallocate": "true"}, UNSET, ["preallocate"])
    [bare] = for_describe(entries, synonyms=False, documentation=False)
    [full] = for_describe(entries, synonyms=True, documentation=True)

    assert (bare.name, bare.value, bare.config_source, bare.config_type) == ("preallocate", "true", 1, 1)
    assert (bare.synonyms, bare.documentation) == ((), None)
    assert full.synonyms == (
        DescribeConfigsSynonym(name="preallocate", value="true", source=1),
        DescribeConfigsSynonym(name="log.preallocate", value="false", source=5),
    )
    assert full.documentation == TOPIC_DEFINITIONS["preallocate"].documentation


def test_the_response_to_a_new_topic_has_all_its_configs() -> None:
    answer = {one.name: one for one in for_create(describe_topic({"retention.ms": "5"}, UNSET))}

    assert len(answer) == sum(not one.is_hidden for one in TOPIC_DEFINITIONS.values())
    assert (answer["retention.ms"].value, answer["retention.ms"].config_source) == ("5", 1)
    assert (answer["segment.ms"].value, answer["segment.ms"].config_source) == ("604800000", 5)


def test_authentication_settings_are_described_under_kafkas_names() -> None:
    net = NetConfig(listeners=("PLAINTEXT://127.0.0.1:9092", "SASL_SSL://127.0.0.1:9093"))
    security = SecurityConfig(
        mechanisms=("SCRAM-SHA-512", "PLAIN"), acls=True, client_certificates="requested", session_max_ms=5000
    )
    assert security_settings(security, net) == {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        "ssl.client.auth": "requested",
        "connections.max.reauth.ms": "5000",
        "sasl.server.max.receive.size": "131072",
    }
    assert security_settings(SecurityConfig(), NetConfig()) == {}
