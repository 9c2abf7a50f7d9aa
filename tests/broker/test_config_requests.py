"""DescribeConfigs (32), AlterConfigs (33), IncrementalAlterConfigs (44) and ListConfigResources (74).

Valid values are tested in configs/; this file tests the requests and their effect on a running broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.broker.configs.alter import Operation
from ottla.broker.configs.definition import ConfigType
from ottla.broker.configs.layers import ConfigSource
from ottla.broker.settings import Settings
from ottla.core.errors import ErrorCode
from ottla.groups.config import GroupConfig
from ottla.net.config import NetConfig
from ottla.wire import apis
from ottla.wire.messages import alter_configs as replacing
from ottla.wire.messages import incremental_alter_configs as incremental
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest

from .making import batch as make_batch
from .making import create_topic, produce, send_batch
from .raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ottla.testing import EphemeralBroker

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
NODE = "0"
ALL_BROKERS = ""
SET, DELETE, APPEND, SUBTRACT = Operation


def asking(kind: int, name: str, *keys: str, synonyms: bool = False, docs: bool = False) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys or None)
    return DescribeConfigsRequest(resources=(resource,), include_synonyms=synonyms, include_documentation=docs)


def describe(
    client: RawClient, kind: int, name: str, *keys: str, synonyms: bool = False, docs: bool = False
) -> dict[str, DescribeConfigsResourceResult]:
    [result] = client.ask(asking(kind, name, *keys, synonyms=synonyms, docs=docs)).results
    assert (result.error_code, result.resource_type, result.resource_name) == (ErrorCode.NONE, kind, name), result
    return {config.name: config for config in result.configs}


def value_of(client: RawClient, topic: str, key: str) -> tuple[str | None, ConfigSource]:
    config = describe(client, TOPIC, topic, key)[key]
    return config.value, ConfigSource(config.config_source)


def changing(kind: int, name: str, *changes: tuple[str, Operation, str | None]) -> incremental.AlterConfigsResource:
    configs = tuple(
        incremental.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    )
    return incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def alter(
    client: RawClient, *resources: incremental.AlterConfigsResource, validate_only: bool = False
) -> list[ErrorCode]:
    request = incremental.IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    responses = client.ask(request).responses
    assert [(one.resource_type, one.resource_name) for one in responses] == [
        (one.resource_type, one.resource_name) for one in resources
    ]
    assert all(bool(one.error_message) is (one.error_code != ErrorCode.NONE) for one in responses)
    return [ErrorCode(one.error_code) for one in responses]


def replacement(kind: int, name: str, configs: Mapping[str, str | None]) -> replacing.AlterConfigsResource:
    entries = tuple(replacing.AlterableConfig(name=key, value=value) for key, value in configs.items())
    return replacing.AlterConfigsResource(resource_type=kind, resource_name=name, configs=entries)


def replace_all(
    client: RawClient, *resources: replacing.AlterConfigsResource, validate_only: bool = False
) -> list[ErrorCode]:
    request = replacing.AlterConfigsRequest(resources=resources, validate_only=validate_only)
    return [ErrorCode(one.error_code) for one in client.ask(request).responses]


@pytest.fixture
def clean_broker(broker: ottla.Broker, client: RawClient) -> Iterator[ottla.Broker]:
    """A broker; its dynamic configs are reset afterwards."""
    yield broker
    cleared = [replacement(BROKER, ALL_BROKERS, {}), replacement(BROKER, NODE, {})]
    assert replace_all(client, *cleared) == [ErrorCode.NONE, ErrorCode.NONE]


# Listing


def listed(client: RawClient, *types: int, version: int = 1) -> set[tuple[int, str]]:
    answer = client.ask(ListConfigResourcesRequest(resource_types=types), version)
    assert answer.error_code == ErrorCode.NONE
    return {(one.resource_type, one.resource_name) for one in answer.config_resources}


def test_topics_brokers_and_groups_with_configs_are_listed(client: RawClient, topic: str) -> None:
    group = f"{topic}-that-does-not-exist-yet"
    assert (GROUP, group) not in listed(client)
    assert alter(client, changing(GROUP, group, ("share.auto.offset.reset", SET, "earliest"))) == [ErrorCode.NONE]
    assert {(TOPIC, topic), (BROKER, NODE), (GROUP, group)} <= listed(client)
    assert (GROUP, group) in listed(client, GROUP)
    assert listed(client, BROKER) == {(BROKER, NODE)}
    assert listed(client, BROKER_LOGGER, CLIENT_METRICS) == set()
    assert listed(client, version=0) == set()
    assert alter(client, changing(GROUP, group, ("share.auto.offset.reset", DELETE, None))) == [ErrorCode.NONE]
    assert (GROUP, group) not in listed(client)


def test_a_resource_type_that_does_not_exist_is_not_listed(client: RawClient) -> None:
    answer = client.ask(ListConfigResourcesRequest(resource_types=(TOPIC, 7)))
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, ())


# Describing


@pytest.mark.usefixtures("clean_broker")
def test_an_unknown_broker_config_is_stored_and_described_without_its_value(client: RawClient) -> None:
    unknown = changing(BROKER, NODE, ("my.plugin.level", SET, "5"))
    everywhere = changing(BROKER, ALL_BROKERS, ("my.plugin.level", SET, "6"))
    assert alter(client, unknown, everywhere) == [ErrorCode.NONE, ErrorCode.NONE]
    shown = describe(client, BROKER, NODE, "my.plugin.level", synonyms=True)["my.plugin.level"]
    assert (shown.value, shown.is_sensitive, shown.read_only) == (None, True, True)
    assert [one.source for one in shown.synonyms] == [
        ConfigSource.DYNAMIC_BROKER_CONFIG,
        ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
    ]
    assert alter(client, changing(BROKER, NODE, ("my.plugin.level", APPEND, "5"))) == [ErrorCode.INVALID_CONFIG]


def test_only_explicit_start_up_settings_are_static(tmp_path: Path) -> None:
    groups = GroupConfig(min_session_timeout_ms=100, offsets_retention_minutes=5)
    settings = Settings(net=NetConfig(port=0), groups=groups)
    with ottla.Broker(tmp_path, settings) as broker, RawClient(broker.bootstrap_servers) as client:
        configs = describe(client, BROKER, NODE, synonyms=True)
        address = broker.bootstrap_servers
    set_at_start = {name for name, one in configs.items() if one.config_source == ConfigSource.STATIC_BROKER_CONFIG}
    assert set_at_start == {"listeners", "log.dirs", "group.min.session.timeout.ms", "offsets.retention.minutes"}
    assert configs["listeners"].value == f"PLAINTEXT://{address}"
    assert [(one.value, one.source) for one in configs["group.min.session.timeout.ms"].synonyms] == [
        ("100", ConfigSource.STATIC_BROKER_CONFIG),
        ("6000", ConfigSource.DEFAULT_CONFIG),
    ]
    assert configs["group.max.session.timeout.ms"].value == "1800000"
    assert configs["group.initial.rebalance.delay.ms"].value == "0"


@pytest.mark.parametrize("version", range(apis.DESCRIBE_CONFIGS.first, apis.DESCRIBE_CONFIGS.last + 1))
def test_every_version_describes_a_topic(client: RawClient, name: str, version: int) -> None:
    create_topic(client, name, configs={"retention.ms": "1000"})
    request = asking(TOPIC, name, "retention.ms", "max.message.bytes", synonyms=True, docs=True)
    [result] = client.ask(request, version).results

    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    size, age = sorted(result.configs, key=lambda one: one.name)
    assert (age.value, age.config_source) == ("1000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert [(one.name, one.value) for one in age.synonyms] == [("retention.ms", "1000")]
    assert (size.value, size.config_source) == ("1048588", ConfigSource.DEFAULT_CONFIG)
    assert [one.name for one in size.synonyms] == ["message.max.bytes"]
    assert size.config_type == (ConfigType.INT if version >= 3 else ConfigType.UNKNOWN)
    assert bool(size.documentation) is (version >= 3)


def test_synonyms_and_documentation_come_only_when_asked_for(client: RawClient, topic: str) -> None:
    configs = describe(client, TOPIC, topic)

    assert len(configs) > 30
    assert not any(config.synonyms or config.documentation for config in configs.values())


def test_null_keys_describe_everything_and_unknown_keys_nothing(client: RawClient, topic: str) -> None:
    everything = DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=())
    [result] = client.ask(DescribeConfigsRequest(resources=(everything,))).results

    assert {config.name for config in result.configs} == set(describe(client, TOPIC, topic))
    assert describe(client, TOPIC, topic, "no.such") == {}


def test_a_resource_that_cannot_be_described_does_not_fail_the_others(client: RawClient, topic: str) -> None:
    expected = {
        (TOPIC, topic): ErrorCode.NONE,
        (TOPIC, "no-such"): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (TOPIC, "a b"): ErrorCode.INVALID_TOPIC_EXCEPTION,
        (TOPIC, ""): ErrorCode.INVALID_TOPIC_EXCEPTION,
        (BROKER, NODE): ErrorCode.NONE,
        (BROKER, ALL_BROKERS): ErrorCode.NONE,
        (BROKER, "99"): ErrorCode.INVALID_REQUEST,
        (BROKER, "x"): ErrorCode.INVALID_REQUEST,
        (BROKER_LOGGER, NODE): ErrorCode.INVALID_REQUEST,
        (CLIENT_METRICS, "m"): ErrorCode.INVALID_REQUEST,
        (GROUP, ""): ErrorCode.INVALID_REQUEST,
        (0, ""): ErrorCode.INVALID_REQUEST,
        (77, ""): ErrorCode.INVALID_REQUEST,
    }
    resources = tuple(
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in expected
    )
    results = client.ask(DescribeConfigsRequest(resources=resources)).results

    assert {(one.resource_type, one.resource_name): one.error_code for one in results} == expected
    assert all(bool(one.error_message) is (one.error_code != 0) for one in results)


def test_a_resource_named_repeatedly_is_described_once(client: RawClient, topic: str) -> None:
    [resource] = asking(TOPIC, topic).resources

    [result] = client.ask(DescribeConfigsRequest(resources=(resource,) * 1000)).results
    assert result.resource_name == topic


def test_the_broker_describes_its_start_up_settings(client: RawClient, broker: ottla.Broker) -> None:
    configs = describe(client, BROKER, NODE, synonyms=True)

    assert configs["node.id"].value == NODE
    assert configs["log.dirs"].value == str(broker.broker.data_dir.path)
    assert configs["listeners"].value == f"PLAINTEXT://{broker.bootstrap_servers}"
    assert configs["group.initial.rebalance.delay.ms"].value == "0"
    assert configs["listeners"].read_only
    assert not configs["message.max.bytes"].read_only


# Altering a topic


@pytest.mark.parametrize(
    "version", range(apis.INCREMENTAL_ALTER_CONFIGS.first, apis.INCREMENTAL_ALTER_CONFIGS.last + 1)
)
def test_every_version_alters_single_configs(client: RawClient, name: str, version: int) -> None:
    create_topic(client, name, configs={"retention.ms": "1000", "segment.ms": "5000"})
    altered = changing(
        TOPIC, name, ("retention.ms", DELETE, None), ("flush.ms", SET, "7"), ("cleanup.policy", APPEND, "compact")
    )
    request = incremental.IncrementalAlterConfigsRequest(resources=(altered,), validate_only=False)
    [response] = client.ask(request, version).responses

    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert value_of(client, name, "retention.ms") == ("604800000", ConfigSource.DEFAULT_CONFIG)
    assert value_of(client, name, "segment.ms") == ("5000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert value_of(client, name, "flush.ms") == ("7", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert value_of(client, name, "cleanup.policy") == ("delete,compact", ConfigSource.DYNAMIC_TOPIC_CONFIG)


@pytest.mark.parametrize("version", range(apis.ALTER_CONFIGS.first, apis.ALTER_CONFIGS.last + 1))
def test_every_version_replaces_all_configs(client: RawClient, name: str, version: int) -> None:
    create_topic(client, name, configs={"retention.ms": "1000", "segment.ms": "5000"})
    request = replacing.AlterConfigsRequest(
        resources=(replacement(TOPIC, name, {"segment.ms": "6000"}),), validate_only=False
    )
    [response] = client.ask(request, version).responses

    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert (response.resource_type, response.resource_name) == (TOPIC, name)
    assert value_of(client, name, "retention.ms") == ("604800000", ConfigSource.DEFAULT_CONFIG)
    assert value_of(client, name, "segment.ms") == ("6000", ConfigSource.DYNAMIC_TOPIC_CONFIG)


def test_an_altered_config_applies_at_once_to_an_open_log(client: RawClient, topic: str) -> None:
    produce(client, topic, bytes(200))
    alter(client, changing(TOPIC, topic, ("max.message.bytes", SET, "100")))
    assert send_batch(client, topic, make_batch(bytes(200))).error_code == ErrorCode.MESSAGE_TOO_LARGE

    alter(client, changing(TOPIC, topic, ("max.message.bytes", DELETE, None)))
    produce(client, topic, bytes(200))


def test_the_timestamp_type_can_be_altered_while_records_arrive(client: RawClient, topic: str) -> None:
    assert send_batch(client, topic, make_batch(b"v")).log_append_time_ms == -1
    alter(client, changing(TOPIC, topic, ("message.timestamp.type", SET, "LogAppendTime")))

    assert send_batch(client, topic, make_batch(b"v")).log_append_time_ms > 0


def test_invalid_configs_are_refused_and_change_nothing(client: RawClient, topic: str) -> None:
    refusals = [
        (("no.such", SET, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, "soon"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
    ]
    for change, code in refusals:
        assert alter(client, changing(TOPIC, topic, ("flush.ms", SET, "5"), change)) == [code]
    twice = changing(TOPIC, topic, ("flush.ms", SET, "5"), ("flush.ms", SET, "6"))
    assert alter(client, twice) == [ErrorCode.INVALID_REQUEST]
    assert value_of(client, topic, "flush.ms") == ("1000", ConfigSource.DEFAULT_CONFIG)


def test_an_unknown_operation_is_refused(client: RawClient, topic: str) -> None:
    config = incremental.AlterableConfig(name="flush.ms", config_operation=9, value="5")
    altered = incremental.AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=(config,))

    assert alter(client, altered) == [ErrorCode.INVALID_REQUEST]


def test_a_resource_that_cannot_be_altered_does_not_fail_the_others(client: RawClient, topic: str) -> None:
    change = ("retention.ms", SET, "7")
    resources = {
        (TOPIC, topic): ErrorCode.NONE,
        (TOPIC, "no-such"): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (TOPIC, "a b"): ErrorCode.INVALID_TOPIC_EXCEPTION,
        (TOPIC, ""): ErrorCode.INVALID_REQUEST,
        (BROKER, "99"): ErrorCode.INVALID_REQUEST,
        (BROKER, "x"): ErrorCode.INVALID_REQUEST,
        (BROKER_LOGGER, NODE): ErrorCode.INVALID_REQUEST,
        (GROUP, "g"): ErrorCode.INVALID_CONFIG,
        (GROUP, ""): ErrorCode.INVALID_REQUEST,
        (3, "x"): ErrorCode.INVALID_REQUEST,
    }

    assert alter(client, *(changing(*resource, change) for resource in resources)) == list(resources.values())
    assert replace_all(client, *(replacement(*resource, {"retention.ms": "8"}) for resource in resources)) == list(
        resources.values()
    )
    assert value_of(client, topic, "retention.ms")[0] == "8"


def test_configs_are_validated_before_the_topics_existence(client: RawClient) -> None:
    assert alter(client, changing(TOPIC, "no-such", ("no.such", SET, "1"))) == [ErrorCode.INVALID_CONFIG]


def test_a_duplicate_resource_is_refused_both_times(client: RawClient, topic: str) -> None:
    once = changing(TOPIC, topic, ("retention.ms", SET, "7"))

    assert alter(client, once, once) == [ErrorCode.INVALID_REQUEST] * 2
    assert value_of(client, topic, "retention.ms")[0] == "604800000"


def test_validate_only_changes_nothing_and_answers_the_same(client: RawClient, topic: str) -> None:
    good, bad = ("retention.ms", SET, "7"), ("retention.ms", SET, "soon")
    validated = [changing(TOPIC, topic, good), changing(BROKER, ALL_BROKERS, ("message.max.bytes", SET, "x"))]
    assert alter(client, *validated, validate_only=True) == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert alter(client, changing(TOPIC, topic, bad), validate_only=True) == [ErrorCode.INVALID_CONFIG]
    assert replace_all(client, replacement(TOPIC, topic, {"retention.ms": "7"}), validate_only=True) == [ErrorCode.NONE]

    assert value_of(client, topic, "retention.ms") == ("604800000", ConfigSource.DEFAULT_CONFIG)


def test_altered_configs_survive_a_restart(ottla: EphemeralBroker) -> None:
    with RawClient(ottla.bootstrap_servers) as client:
        create_topic(client, "orders")
        alter(
            client,
            changing(TOPIC, "orders", ("retention.ms", SET, "1234567")),
            changing(BROKER, NODE, ("message.max.bytes", SET, "100")),
        )

    ottla.restart()
    with RawClient(ottla.bootstrap_servers) as client:
        assert value_of(client, "orders", "retention.ms") == ("1234567", ConfigSource.DYNAMIC_TOPIC_CONFIG)
        assert value_of(client, "orders", "max.message.bytes") == ("100", ConfigSource.DYNAMIC_BROKER_CONFIG)
        assert send_batch(client, "orders", make_batch(bytes(100))).error_code == ErrorCode.MESSAGE_TOO_LARGE


# Altering the broker


def test_topics_inherit_changed_broker_configs(
    clean_broker: ottla.Broker, client: RawClient, topic: str, name: str
) -> None:
    own = f"{name}-own"
    create_topic(client, own, configs={"max.message.bytes": "5000"})
    for one in (topic, own):
        produce(client, one, bytes(200))

    assert alter(client, changing(BROKER, ALL_BROKERS, ("message.max.bytes", SET, "100"))) == [ErrorCode.NONE]
    assert send_batch(client, topic, make_batch(bytes(200))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    produce(client, own, bytes(200))
    assert value_of(client, topic, "max.message.bytes") == ("100", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)

    assert alter(client, changing(BROKER, NODE, ("message.max.bytes", SET, "1000"))) == [ErrorCode.NONE]
    produce(client, topic, bytes(200))
    assert value_of(client, topic, "max.message.bytes") == ("1000", ConfigSource.DYNAMIC_BROKER_CONFIG)
    assert set(describe(client, BROKER, ALL_BROKERS)) == {"message.max.bytes"}
    assert clean_broker.broker.topics.by_name[topic].config.log.max_message_bytes == 1000


def test_start_up_settings_cannot_be_altered(clean_broker: ottla.Broker, client: RawClient) -> None:
    refused = [
        changing(BROKER, NODE, ("node.id", SET, "3")),
        changing(BROKER, ALL_BROKERS, ("message.max.bytes", SET, "many")),
    ]

    assert alter(client, *refused) == [ErrorCode.INVALID_REQUEST] * 2
    assert describe(client, BROKER, NODE, "node.id")["node.id"].value == str(clean_broker.broker.config.node_id)
