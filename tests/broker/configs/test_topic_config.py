from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ottla.broker.configs.definition import ConfigType, Definition
from ottla.broker.configs.definitions import TOPIC_DEFINITIONS
from ottla.broker.configs.layers import CLUSTER_DEFAULT, BrokerConfigs
from ottla.broker.configs.topic_config import TopicConfig, unusable
from ottla.broker.configs.values import parse
from ottla.core.errors import InvalidConfig
from ottla.storage.catalog.entries import ConfigResource, ConfigScope, ResourceConfigs
from ottla.storage.catalog.view import CatalogView
from ottla.storage.config import LogConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

NEVER = str((1 << 63) - 1)


def log_config(overrides: Mapping[str, str], log: LogConfig | None = None) -> LogConfig:
    return BrokerConfigs(log=log or LogConfig()).topic_config(overrides).log


def test_topic_defaults_equal_log_defaults() -> None:
    assert BrokerConfigs().topic_config({}).log == LogConfig()


def test_topics_without_configs_share_one_log_config() -> None:
    broker = BrokerConfigs()

    assert broker.topic_config({}) is broker.topic_config({})


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"segment.bytes": "1048576"}, {"segment_bytes": 1 << 20}),
        ({"segment.ms": "60000"}, {"segment_ms": 60_000}),
        ({"segment.index.bytes": "4096"}, {"segment_index_bytes": 4096}),
        ({"index.interval.bytes": "0"}, {"index_interval_bytes": 0}),
        ({"retention.ms": "-1"}, {"retention_ms": -1}),
        ({"retention.bytes": "1000"}, {"retention_bytes": 1000}),
        ({"max.message.bytes": "2000000"}, {"max_message_bytes": 2_000_000}),
        ({"message.timestamp.type": "LogAppendTime"}, {"message_timestamp_type": "LogAppendTime"}),
        ({"message.timestamp.before.max.ms": "5"}, {"message_timestamp_before_max_ms": 5}),
        ({"message.timestamp.after.max.ms": "5"}, {"message_timestamp_after_max_ms": 5}),
        ({"cleanup.policy": "compact"}, {"cleanup_policy": "compact"}),
        ({"cleanup.policy": "delete,compact"}, {"cleanup_policy": "compact,delete"}),
        ({"cleanup.policy": "compact,delete"}, {"cleanup_policy": "compact,delete"}),
        ({"retention.ms": "5", "segment.ms": "7"}, {"retention_ms": 5, "segment_ms": 7}),
    ],
)
def test_topic_configs_reach_the_log(overrides: dict[str, str], expected: dict[str, Any]) -> None:
    assert log_config(overrides) == replace(LogConfig(), **expected)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        # Kafka accepts any negative number as "no limit", and an index too small for an entry.
        ({"retention.bytes": "-7"}, {"retention_bytes": -1}),
        ({"segment.index.bytes": "4"}, {"segment_index_bytes": 1024}),
        ({"internal.segment.bytes": "2048"}, {"segment_bytes": 2048}),
        ({"internal.segment.bytes": "2048", "segment.bytes": "1048576"}, {"segment_bytes": 2048}),
        # No policy: nothing is deleted, and DeleteRecords still works, as in Kafka.
        ({"cleanup.policy": ""}, {"cleanup_policy": "delete", "retention_ms": -1, "retention_bytes": -1}),
        ({"cleanup.policy": "", "retention.ms": "5"}, {"retention_ms": -1}),
        # The active segment is never compacted, so it must not stay active for too long.
        ({"cleanup.policy": "compact", "max.compaction.lag.ms": "5"}, {"cleanup_policy": "compact", "segment_ms": 5}),
        ({"max.compaction.lag.ms": "5"}, {}),
        ({"flush.messages": "1"}, {"flush": "ack"}),
        ({"flush.messages": "10000"}, {"flush": "ack"}),
        ({"flush.messages": "1", "flush.ms": "50"}, {"flush": "ack"}),
        ({"flush.ms": "50"}, {"flush": "interval", "flush_interval_ms": 50}),
        ({"flush.ms": "0"}, {"flush": "interval", "flush_interval_ms": 1}),
        ({"flush.ms": NEVER}, {"flush": "os"}),
        ({"flush.messages": NEVER}, {}),
    ],
)
def test_topic_configs_are_translated_to_log_settings(overrides: dict[str, str], expected: dict[str, Any]) -> None:
    assert log_config(overrides) == replace(LogConfig(), **expected)


def test_a_topic_inherits_the_brokers_start_up_settings() -> None:
    log = LogConfig(
        segment_bytes=4096, retention_ms=5, flush="ack", cleanup_policy="compact", producer_id_expiration_ms=77
    )

    assert log_config({}, log) == log
    assert log_config({"retention.ms": "6"}, log) == replace(log, retention_ms=6)
    assert log_config({"flush.messages": NEVER}, log) == replace(log, flush="os")


def test_a_topics_delete_policy_restores_the_limits_lifted_by_the_brokers_policy() -> None:
    broker = BrokerConfigs(log=LogConfig(retention_ms=5), dynamic={"log.cleanup.policy": ""})

    assert broker.topic_config({}).log.retention_ms == -1
    assert broker.topic_config({"cleanup.policy": "delete"}).log.retention_ms == 5


def test_broker_configs_override_the_cluster_default_which_overrides_the_file() -> None:
    log = LogConfig(retention_ms=1, segment_ms=1, index_interval_bytes=1, max_message_bytes=1)
    broker = BrokerConfigs(
        log=log,
        dynamic_default={"log.retention.ms": "2", "log.roll.ms": "2", "log.index.interval.bytes": "2"},
        dynamic={"log.retention.ms": "3", "log.roll.ms": "3"},
    )

    config = broker.topic_config({"retention.ms": "4"}).log
    found = config.retention_ms, config.segment_ms, config.index_interval_bytes, config.max_message_bytes
    assert found == (4, 3, 2, 1)


def test_the_producer_id_expiration_can_be_set_for_all_topics() -> None:
    everywhere = BrokerConfigs(dynamic_default={"producer.id.expiration.ms": "5"})
    here = BrokerConfigs(dynamic_default={"producer.id.expiration.ms": "5"}, dynamic={"producer.id.expiration.ms": "6"})

    assert everywhere.topic_config({"retention.ms": "1"}).log.producer_id_expiration_ms == 5
    assert here.topic_config({}).log.producer_id_expiration_ms == 6


def test_configs_that_do_not_concern_logs_are_kept_beside_the_log_config() -> None:
    config = BrokerConfigs(static={"min.insync.replicas": "2"}).topic_config(
        {
            "compression.type": "zstd",
            "compression.zstd.level": "7",
            "compression.gzip.level": "9",
            "min.compaction.lag.ms": "1",
            "max.compaction.lag.ms": "2",
            "delete.retention.ms": "3",
            "file.delete.delay.ms": "4",
            "segment.jitter.ms": "5",
            "min.cleanable.dirty.ratio": "0.25",
            "unclean.leader.election.enable": "true",
            "leader.replication.throttled.replicas": "0:1,1:2",
            "follower.replication.throttled.replicas": "*",
        }
    )

    assert config == TopicConfig(
        log=LogConfig(),
        compression_type="zstd",
        compression_level=7,
        min_insync_replicas=2,
        leader_replication_throttled_replicas=("0:1", "1:2"),
        follower_replication_throttled_replicas=("*",),
        delete_retention_ms=3,
        min_compaction_lag_ms=1,
        max_compaction_lag_ms=2,
        min_cleanable_dirty_ratio=0.25,
    )


@pytest.mark.parametrize(
    ("codec", "level"),
    [("producer", None), ("uncompressed", None), ("snappy", None), ("gzip", -1), ("lz4", 9), ("zstd", 3)],
)
def test_only_some_codecs_have_levels(codec: str, level: int | None) -> None:
    config = BrokerConfigs().topic_config({"compression.type": codec})

    assert (config.compression_type, config.compression_level) == (codec, level)


def test_unusable_configs_of_another_release_are_ignored_and_reported() -> None:
    stored = {"retention.ms": "soon", "segment.bytes": "14", "message.format.version": "2.0", "segment.ms": "5"}

    assert log_config(stored) == LogConfig(segment_ms=5)
    assert unusable(stored) == ["retention.ms=soon", "segment.bytes=14", "message.format.version=2.0"]
    assert (
        BrokerConfigs(dynamic={"log.retention.ms": "soon", "producer.id.expiration.ms": "x"}).topic_defaults.log
        == LogConfig()
    )


def test_broker_configs_are_read_from_the_catalog() -> None:
    of_all = ResourceConfigs(CLUSTER_DEFAULT, {"log.retention.ms": "1"})
    of_one = ResourceConfigs(ConfigResource(ConfigScope.BROKER, "7"), {"log.retention.ms": "2"})
    view = CatalogView(configs=MappingProxyType({of_all.resource: of_all, of_one.resource: of_one}))

    assert BrokerConfigs.of(view, 7, LogConfig(), {}).topic_defaults.log.retention_ms == 2
    assert BrokerConfigs.of(view, 8, LogConfig(), {}).topic_defaults.log.retention_ms == 1
    assert BrokerConfigs.of(CatalogView(), 7, LogConfig(), {}) == BrokerConfigs()


def texts(definition: Definition) -> st.SearchStrategy[str]:
    bits = {ConfigType.INT: 31, ConfigType.LONG: 63}.get(definition.type)
    if bits is not None:
        return st.integers(-2, (1 << bits) - 1).map(str)
    if definition.type is ConfigType.DOUBLE:
        return st.floats(0, 1).map(str)
    return st.sampled_from(
        ["true", "false", "", "delete", "compact", "compact,delete", "zstd", "lz4", "CreateTime", "LogAppendTime", "*"]
    )


OVERRIDES = st.fixed_dictionaries({}, optional={one.name: texts(one) for one in TOPIC_DEFINITIONS.values()})


@given(OVERRIDES, OVERRIDES)
def test_every_valid_config_gives_a_valid_log_config(stored: dict[str, str], defaults: dict[str, str]) -> None:
    def is_valid(name: str, text: str) -> bool:
        try:
            parse(TOPIC_DEFINITIONS[name], text)
        except InvalidConfig:
            return False
        return True

    dynamic = {TOPIC_DEFINITIONS[name].broker_name or name: text for name, text in defaults.items()}
    broker = BrokerConfigs(dynamic=dynamic)
    valid = {name: text for name, text in stored.items() if is_valid(name, text)}

    assert broker.topic_config(valid) == broker.topic_config(stored)
    assert unusable(valid) == []
