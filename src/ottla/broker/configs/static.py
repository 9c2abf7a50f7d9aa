"""What this broker was started with, under Kafka's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.configs.values import to_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.config import BrokerConfig
    from ottla.broker.configs.definition import Value


def static_settings(config: BrokerConfig, more: Mapping[str, Value | None]) -> dict[str, str]:
    """What the BrokerConfig says, and `more` under Kafka's names: listeners, limits, group timeouts, …

    What is None is left to its default. What a LogConfig says is no part of it: BrokerConfigs sees to that.
    """
    settings: dict[str, Value | None] = {
        "node.id": config.node_id,
        "broker.id": config.node_id,
        "process.roles": ("broker", "controller"),
        "log.dirs": str(config.data_dir),
        "auto.create.topics.enable": config.auto_create_topics,
        "num.partitions": config.default_partitions,
        "fetch.max.bytes": config.fetch_max_bytes,
        "max.incremental.fetch.session.cache.slots": config.max_fetch_sessions,
        "log.retention.check.interval.ms": config.retention_check_interval_ms,
        "log.flush.offset.checkpoint.interval.ms": config.checkpoint_interval_ms,
        "offsets.topic.num.partitions": config.offsets_topic_partitions,
        # One node: there is nobody to hold a second replica.
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        **more,
    }
    return {name: to_text(value) for name, value in settings.items() if value is not None}
