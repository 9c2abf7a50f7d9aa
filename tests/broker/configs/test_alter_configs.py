from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
from ottla.broker.configs.definitions import TOPIC_DEFINITIONS, broker_definitions
from ottla.broker.configs.layers import CLUSTER_DEFAULT, BrokerConfigs
from ottla.core.errors import ApiError, InvalidConfig, InvalidRequest
from ottla.storage.catalog.sqlite import SqliteCatalog
from ottla.wire.messages.alter_configs import AlterableConfig as Setting
from ottla.wire.messages.create_topics import CreatableTopicConfig
from ottla.wire.messages.incremental_alter_configs import AlterableConfig

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Texts = dict[str, str]
Op = tuple[int, str, str | None]

SET, DELETE, APPEND, SUBTRACT = Operation
POLICY = "cleanup.policy"
THROTTLED = "leader.replication.throttled.replicas"
UNSET = BrokerConfigs()


def alterable(*operations: Op) -> list[AlterableConfig]:
    return [AlterableConfig(name=name, config_operation=code, value=value) for code, name, value in operations]


def alter(old: Texts, *operations: Op, resource: Resource | None = None) -> Texts:
    edit = incremental_edit(resource or topic_resource(UNSET), alterable(*operations))
    return dict(edit(old))


def replace_all(old: Texts, settings: dict[str, str | None], *, resource: Resource | None = None) -> Texts:
    configs = [Setting(name=name, value=value) for name, value in settings.items()]
    return dict(replacing_edit(resource or topic_resource(UNSET), configs)(old))


def create(*settings: tuple[str, str | None]) -> Texts:
    return new_topic_configs(UNSET, [CreatableTopicConfig(name=name, value=value) for name, value in settings])


@pytest.mark.parametrize(
    ("old", "operation", "new"),
    [
        ({}, (SET, "retention.ms", " 05 "), {"retention.ms": "5"}),
        ({"retention.ms": "5"}, (SET, "retention.ms", "6"), {"retention.ms": "6"}),
        ({"segment.ms": "5"}, (SET, "retention.ms", "6"), {"segment.ms": "5", "retention.ms": "6"}),
        ({}, (SET, "retention.ms", "604800000"), {"retention.ms": "604800000"}),  # set to the default
        ({}, (SET, POLICY, ""), {POLICY: ""}),
        ({"retention.ms": "5"}, (DELETE, "retention.ms", None), {}),
        ({"retention.ms": "5"}, (DELETE, "retention.ms", "ignored"), {}),
        ({}, (DELETE, "retention.ms", None), {}),
        ({"old.config": "x"}, (DELETE, "old.config", None), {}),
        ({}, (DELETE, "never.was", None), {}),
        ({}, (APPEND, POLICY, "compact"), {POLICY: "delete,compact"}),  # to the default
        ({POLICY: "compact"}, (APPEND, POLICY, "delete"), {POLICY: "compact,delete"}),
        ({POLICY: "compact"}, (APPEND, POLICY, "compact"), {POLICY: "compact"}),
        ({POLICY: ""}, (APPEND, POLICY, "compact"), {POLICY: "compact"}),  # empty is not the default
        ({}, (APPEND, THROTTLED, " 1:2 , 3:4"), {THROTTLED: "1:2,3:4"}),
        ({THROTTLED: "1:2"}, (APPEND, THROTTLED, "3:4,1:2"), {THROTTLED: "1:2,3:4"}),
        ({POLICY: "compact,delete"}, (SUBTRACT, POLICY, "delete"), {POLICY: "compact"}),
        ({}, (SUBTRACT, POLICY, "delete"), {POLICY: ""}),  # from the default
        ({THROTTLED: "1:2,3:4"}, (SUBTRACT, THROTTLED, " 3:4 ,9:9"), {THROTTLED: "1:2"}),
        ({}, (SUBTRACT, THROTTLED, "1:2"), {THROTTLED: ""}),
        ({THROTTLED: "1:2"}, (SUBTRACT, THROTTLED, ""), {THROTTLED: "1:2"}),
    ],
)
def test_an_operation_changes_its_config_and_no_other(old: Texts, operation: Op, new: Texts) -> None:
    before = dict(old)

    assert alter(old, operation) == new
    assert old == before


def test_all_operations_of_a_request_are_applied_atomically() -> None:
    old = {"retention.ms": "1", "segment.ms": "2"}

    new = alter(old, (SET, "retention.ms", "3"), (DELETE, "segment.ms", None), (APPEND, POLICY, "compact"))

    assert new == {"retention.ms": "3", POLICY: "delete,compact"}
    assert alter(old) == old


@pytest.mark.parametrize(
    ("operations", "error", "message"),
    [
        ([(SET, "rentention.ms", "5")], InvalidConfig, "did you mean retention.ms?"),
        ([(SET, "retention.ms", "x")], InvalidConfig, "Invalid value x for configuration retention.ms: must be"),
        ([(SET, "segment.bytes", "1024")], InvalidConfig, "must be at least 1048576"),
        ([(SET, "remote.storage.enable", "true")], InvalidConfig, "no tiered storage"),
        (
            [(APPEND, "retention.ms", "5")],
            InvalidConfig,
            "Cannot append to retention.ms: it is not a list but of type LONG",
        ),
        ([(SUBTRACT, "retention.ms", "5")], InvalidConfig, "Cannot subtract from retention.ms"),
        ([(APPEND, "compression.type", "gzip")], InvalidConfig, "it is not a list but of type STRING"),
        ([(APPEND, "polizy", "compact")], InvalidConfig, "Unknown topic config name: polizy"),
        ([(APPEND, POLICY, "purge")], InvalidConfig, "Invalid value delete,purge for configuration cleanup.policy"),
        ([(APPEND, POLICY, "")], InvalidConfig, "No value to append to cleanup.policy"),
        ([(APPEND, POLICY, "compact,,delete")], InvalidConfig, "a list without empty items"),
        ([(APPEND, THROTTLED, "1:2,*")], InvalidConfig, "must be \\* or a list of partition:broker"),
        ([(SET, "retention.ms", None)], InvalidRequest, "retention.ms cannot be null; DELETE resets it"),
        ([(APPEND, POLICY, None)], InvalidRequest, "cleanup.policy cannot be null"),
        ([(7, "retention.ms", "5")], InvalidRequest, "SET \\(0\\), DELETE \\(1\\), APPEND \\(2\\), SUBTRACT \\(3\\)"),
        ([(-1, "retention.ms", "5")], InvalidRequest, "unknown operation -1"),
        ([(SET, "retention.ms", "5"), (SET, "retention.ms", "6")], InvalidRequest, "named more than once"),
        ([(SET, "retention.ms", "5"), (DELETE, "retention.ms", None)], InvalidRequest, "named more than once"),
        ([(SET, "retention.ms", "5"), (SET, "segment.ms", "x")], InvalidConfig, "segment.ms"),
        (
            [(SET, "min.compaction.lag.ms", "10"), (SET, "max.compaction.lag.ms", "5")],
            InvalidConfig,
            "min.compaction.lag.ms \\(10\\) must not be more than max.compaction.lag.ms \\(5\\)",
        ),
    ],
)
def test_an_invalid_request_is_refused_as_a_whole(operations: list[Op], error: type[ApiError], message: str) -> None:
    with pytest.raises(error, match=message):
        alter({}, *operations)


def test_configs_are_checked_against_the_existing_ones_and_the_brokers_defaults() -> None:
    with pytest.raises(InvalidConfig, match=r"min\.compaction\.lag\.ms \(10\)"):
        alter({"max.compaction.lag.ms": "5"}, (SET, "min.compaction.lag.ms", "10"))
    broker = BrokerConfigs(dynamic_default={"log.cleaner.max.compaction.lag.ms": "5"})
    with pytest.raises(InvalidConfig, match=r"max\.compaction\.lag\.ms \(5\)"):
        alter({}, (SET, "min.compaction.lag.ms", "10"), resource=topic_resource(broker))
    assert alter({}, (SET, "min.compaction.lag.ms", "5"), resource=topic_resource(broker))


def test_a_stored_value_that_is_no_longer_valid_does_not_block_changes_to_others() -> None:
    stored = {"segment.bytes": "14", "message.format.version": "2.0"}

    assert alter(stored, (SET, "retention.ms", "5")) == {**stored, "retention.ms": "5"}
    assert alter(stored, (DELETE, "segment.bytes", None), (DELETE, "message.format.version", None)) == {}


def test_append_extends_the_inherited_value() -> None:
    broker = BrokerConfigs(dynamic={"log.cleanup.policy": "compact"})

    assert alter({}, (APPEND, POLICY, "delete"), resource=topic_resource(broker)) == {POLICY: "compact,delete"}


def test_alter_configs_replaces_all_configs() -> None:
    old = {"retention.ms": "1", "segment.ms": "2"}

    assert replace_all(old, {"retention.ms": " 3"}) == {"retention.ms": "3"}
    assert replace_all(old, {}) == {}


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"retention.ms": None}, InvalidRequest, "cannot be null"),
        ({"retention.ms": "x"}, InvalidConfig, "Invalid value x"),
        ({"segmentms": "5"}, InvalidConfig, "did you mean segment.ms?"),
        ({"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"}, InvalidConfig, "must not be more than"),
    ],
)
def test_alter_configs_is_refused_for_the_same_reasons(
    settings: dict[str, str | None], error: type[ApiError], message: str
) -> None:
    with pytest.raises(error, match=message):
        replace_all({}, settings)


def test_alter_configs_cannot_name_a_config_twice() -> None:
    twice = [Setting(name="segment.ms", value="5"), Setting(name="segment.ms", value="6")]
    with pytest.raises(InvalidRequest, match=r"segment\.ms is named more than once"):
        replacing_edit(topic_resource(UNSET), twice)


def test_a_new_topics_configs_are_normalized_and_the_last_duplicate_wins() -> None:
    assert create() == {}
    assert create(("retention.ms", " 05 "), ("preallocate", "TRUE")) == {"retention.ms": "5", "preallocate": "true"}
    assert create(("retention.ms", "5"), ("retention.ms", "6")) == {"retention.ms": "6"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([("retention.ms", None)], "cannot be null"),
        ([("retention.ms", "x")], "Invalid value x"),
        ([("nope", "x")], "Unknown topic config name: nope"),
        ([("min.compaction.lag.ms", "2"), ("max.compaction.lag.ms", "1")], "must not be more than"),
    ],
)
def test_a_new_topic_with_a_bad_config_is_refused(settings: list[tuple[str, str | None]], message: str) -> None:
    with pytest.raises(InvalidConfig, match=message):
        create(*settings)


BOTH = pytest.mark.parametrize("resource_of", [broker_resource, cluster_default_resource])


@BOTH
def test_the_defaults_for_topics_can_be_changed_while_the_broker_runs(
    resource_of: Callable[[BrokerConfigs], Resource],
) -> None:
    resource = resource_of(UNSET)
    dynamic = {one.name for one in broker_definitions().values() if not one.is_read_only}

    assert alter({}, (SET, "log.retention.ms", " 05"), resource=resource) == {"log.retention.ms": "5"}
    assert alter({}, (APPEND, "log.cleanup.policy", "compact"), resource=resource) == {
        "log.cleanup.policy": "delete,compact"
    }
    assert replace_all({"log.roll.ms": "5"}, {"log.retention.ms": "5"}, resource=resource) == {"log.retention.ms": "5"}
    assert dynamic == {one.broker_name for one in TOPIC_DEFINITIONS.values() if one.broker_name} | {
        "broker.draining",
        "producer.id.expiration.ms",
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }


@BOTH
def test_unknown_broker_configs_are_stored(resource_of: Callable[[BrokerConfigs], Resource]) -> None:
    resource = resource_of(UNSET)
    kept = alter({}, (SET, "my.plugin.level", "5"), resource=resource)
    assert kept == {"my.plugin.level": "5"}
    assert alter(kept, (DELETE, "my.plugin.level", None), resource=resource) == {}


@BOTH
@pytest.mark.parametrize(
    ("operation", "error", "message"),
    [
        ((SET, "node.id", "7"), InvalidRequest, "node.id cannot be changed at run time"),
        ((SET, "auto.create.topics.enable", "true"), InvalidRequest, "cannot be changed"),
        ((APPEND, "listeners", "PLAINTEXT://:1"), InvalidRequest, "cannot be changed"),
        # Kafka answers a broker's bad values with another code than a topic's.
        ((SET, "log.retention.ms", "x"), InvalidRequest, "Invalid value x for configuration log.retention.ms"),
        ((SET, "log.segment.bytes", "1024"), InvalidRequest, "must be at least 1048576"),
        ((APPEND, "log.retention.ms", "5"), InvalidConfig, "it is not a list"),
        ((APPEND, "log.retenshun.ms", "5"), InvalidConfig, "did you mean log.retention.ms?"),
        ((SUBTRACT, "retention.ms", "5"), InvalidConfig, "Unknown broker config name: retention.ms"),
    ],
)
def test_an_invalid_broker_config_is_refused(
    resource_of: Callable[[BrokerConfigs], Resource], operation: Op, error: type[ApiError], message: str
) -> None:
    with pytest.raises(error, match=message):
        alter({}, operation, resource=resource_of(UNSET))


@BOTH
def test_defaults_that_would_contradict_each_other_in_every_topic_are_refused(
    resource_of: Callable[[BrokerConfigs], Resource],
) -> None:
    with pytest.raises(InvalidRequest, match="must not be more than"):
        alter(
            {"log.cleaner.max.compaction.lag.ms": "5"},
            (SET, "log.cleaner.min.compaction.lag.ms", "10"),
            resource=resource_of(UNSET),
        )


@BOTH
def test_a_stored_read_only_config_can_be_deleted(resource_of: Callable[[BrokerConfigs], Resource]) -> None:
    assert alter({"node.id": "7"}, (DELETE, "node.id", None), resource=resource_of(UNSET)) == {}


def test_append_for_a_broker_starts_from_the_cluster_default_and_that_from_the_file() -> None:
    name = "log.cleanup.policy"
    broker = BrokerConfigs(static={name: "compact"}, dynamic_default={name: ""})

    assert alter({}, (APPEND, name, "delete"), resource=broker_resource(broker)) == {name: "delete"}
    assert alter({}, (APPEND, name, "delete"), resource=cluster_default_resource(broker)) == {name: "compact,delete"}


def test_an_edit_changes_the_catalog_or_leaves_it_alone(tmp_path: Path) -> None:
    catalog = SqliteCatalog.open(tmp_path)
    try:
        topic = catalog.create_topic("orders", 1, create(("segment.ms", "5")))
        catalog.change_topic_configs(
            topic.id, incremental_edit(topic_resource(UNSET), alterable((SET, "retention.ms", "6")))
        )
        catalog.change_configs(
            CLUSTER_DEFAULT, incremental_edit(cluster_default_resource(UNSET), alterable((SET, "log.roll.ms", "7")))
        )
        view = catalog.view
        with pytest.raises(InvalidConfig):
            catalog.change_topic_configs(
                topic.id, incremental_edit(topic_resource(UNSET), alterable((SET, "retention.ms", "x")))
            )
        assert catalog.view is view
        assert view.topic("orders").configs == {"segment.ms": "5", "retention.ms": "6"}
        assert view.configs[CLUSTER_DEFAULT].configs == {"log.roll.ms": "7"}
    finally:
        catalog.close()
