"""The settings at the start of this broker, under Kafka's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.configs.values import to_text
from ottla.broker.settings import Settings
from ottla.core.ids import Address
from ottla.net.connection import LOGIN_FRAME_BYTES

if TYPE_CHECKING:
    from ottla.broker.config import BrokerConfig
    from ottla.broker.configs.definition import Value
    from ottla.cluster.config import ClusterConfig
    from ottla.groups.config import GroupConfig
    from ottla.net.config import NetConfig
    from ottla.net.listener_config import ListenerConfig
    from ottla.net.security_config import SecurityConfig
    from ottla.share.config import ShareConfig
    from ottla.transactions.config import TransactionConfig


_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""Kafka's authorizer class whose rules are implemented: tools check whether one is set."""
_USUAL: Final = Settings().completed(is_member=False)


def all_static_settings(settings: Settings, address: Address, *, is_member: bool) -> dict[str, str]:
    """The static settings of all parts of the broker; with `is_member`, including those of a cluster node."""
    static = static_settings(settings.broker, settings.net, settings.groups, address, settings.transactions)
    static |= share_settings(settings.share) | security_settings(settings.security, settings.net)
    return static | cluster_settings(settings.cluster) if is_member else static


def static_settings(
    broker: BrokerConfig,
    net: NetConfig,
    groups: GroupConfig,
    address: Address,
    transactions: TransactionConfig = _USUAL.transactions,
) -> dict[str, str]:
    """Settings that differ from the defaults.

    Those of a LogConfig are not included: BrokerConfigs adds them.
    """
    values, usual = static_kafka_settings(broker, net, groups, address, transactions), default_settings()
    return {name: to_text(value) for name, value in values.items() if value is not None and value != usual[name]}


def share_settings(share: ShareConfig) -> dict[str, str]:
    """Settings of share groups that differ from the defaults."""
    values, usual = _share_kafka_settings(share), _share_kafka_settings(_USUAL.share)
    return {name: str(value) for name, value in values.items() if value != usual[name]}


def security_settings(security: SecurityConfig, net: NetConfig) -> dict[str, str]:
    """Listeners and authentication."""
    values = {"authorizer.class.name": _AUTHORIZER} if security.acls else {}
    if security.client_certificates != "none":
        values["ssl.client.auth"] = security.client_certificates
    if security.tls_min_version == "TLSv1.3":
        values["ssl.enabled.protocols"] = "TLSv1.3"
    if security.session_max_ms:
        values["connections.max.reauth.ms"] = str(security.session_max_ms)
    mechanisms = _mechanisms(security, net)
    if mechanisms:
        values["sasl.enabled.mechanisms"] = ",".join(mechanisms)
        values["sasl.server.max.receive.size"] = str(LOGIN_FRAME_BYTES)
    return values


def _mechanisms(security: SecurityConfig, net: NetConfig) -> dict[str, None]:
    """The mechanisms of all SASL listeners, without duplicates."""
    asking = [one for one in _parsed(net) if one.uses_sasl] if net.listeners else []
    return {name: None for one in asking for name in one.mechanisms or security.mechanisms}


def cluster_settings(cluster: ClusterConfig) -> dict[str, str]:
    """Settings of a cluster member: the default replication factor and its rack."""
    values = {
        "default.replication.factor": cluster.default_replication_factor,
        "offsets.topic.replication.factor": cluster.internal_replication_factor,
        "transaction.state.log.replication.factor": cluster.internal_replication_factor,
    }
    rack = {"broker.rack": cluster.rack} if cluster.rack else {}
    return {name: str(value) for name, value in values.items() if value != 1} | rack


def _share_kafka_settings(share: ShareConfig) -> dict[str, int]:
    return {
        "group.share.record.lock.duration.ms": share.record_lock_duration_ms,
        "group.share.delivery.count.limit": share.delivery_count_limit,
        "group.share.partition.max.record.locks": share.partition_max_record_locks,
        "group.share.session.timeout.ms": share.session_timeout_ms,
        "group.share.heartbeat.interval.ms": share.heartbeat_interval_ms,
        "group.share.max.size": share.max_size,
        "group.share.max.share.sessions": share.max_share_sessions,
        "share.coordinator.state.topic.num.partitions": share.state_topic_partitions,
        "share.coordinator.snapshot.update.records.per.snapshot": share.state_updates_per_snapshot,
    }


def default_settings() -> dict[str, Value | None]:
    address = Address(_USUAL.net.host, _USUAL.net.port)
    return static_kafka_settings(_USUAL.broker, _USUAL.net, _USUAL.groups, address, _USUAL.transactions)


def static_kafka_settings(
    broker: BrokerConfig, net: NetConfig, groups: GroupConfig, address: Address, transactions: TransactionConfig
) -> dict[str, Value | None]:
    return {
        "node.id": broker.node_id,
        "broker.id": broker.node_id,
        "log.dirs": (str(broker.data_dir),),
        "auto.create.topics.enable": broker.auto_create_topics,
        "num.partitions": broker.default_partitions,
        "fetch.max.bytes": broker.fetch_max_bytes,
        "max.incremental.fetch.session.cache.slots": broker.max_fetch_sessions,
        "log.retention.check.interval.ms": broker.retention_check_interval_ms,
        "log.flush.offset.checkpoint.interval.ms": broker.checkpoint_interval_ms,
        "offsets.topic.num.partitions": broker.offsets_topic_partitions,
        "listeners": _listeners(net, address),
        "advertised.listeners": _advertised(net),
        "socket.request.max.bytes": net.max_frame_bytes,
        "max.connections": net.max_connections,
        "max.connections.per.ip": net.max_connections_per_address,
        "max.connections.per.ip.overrides": ",".join(net.max_connections_per_address_overrides),
        "connections.max.idle.ms": net.max_idle_ms,
        "group.min.session.timeout.ms": groups.min_session_timeout_ms,
        "group.max.session.timeout.ms": groups.max_session_timeout_ms,
        "group.initial.rebalance.delay.ms": groups.initial_rebalance_delay_ms,
        "group.max.size": groups.max_size,
        "group.consumer.session.timeout.ms": groups.consumer_session_timeout_ms,
        "group.consumer.min.session.timeout.ms": groups.consumer_min_session_timeout_ms,
        "group.consumer.max.session.timeout.ms": groups.consumer_max_session_timeout_ms,
        "group.consumer.heartbeat.interval.ms": groups.consumer_heartbeat_interval_ms,
        "group.consumer.min.heartbeat.interval.ms": groups.consumer_min_heartbeat_interval_ms,
        "group.consumer.max.heartbeat.interval.ms": groups.consumer_max_heartbeat_interval_ms,
        "group.consumer.max.size": groups.consumer_max_size,
        "group.consumer.assignors": groups.consumer_assignors,
        "group.consumer.migration.policy": groups.consumer_migration_policy,
        "offsets.retention.minutes": groups.offsets_retention_minutes,
        "offsets.retention.check.interval.ms": groups.offsets_retention_check_interval_ms,
        "offset.metadata.max.bytes": groups.offset_metadata_max_bytes,
        "transaction.max.timeout.ms": transactions.max_timeout_ms,
        "transactional.id.expiration.ms": transactions.id_expiration_ms,
        "transaction.state.log.num.partitions": transactions.state_topic_partitions,
    }


def _listeners(net: NetConfig, address: Address) -> tuple[str, ...]:
    if not net.listeners:
        return (f"PLAINTEXT://{address}",)
    return tuple(map(str, _parsed(net)))


def _advertised(net: NetConfig) -> tuple[str, ...] | None:
    if not net.listeners:
        return (f"PLAINTEXT://{net.advertised}",) if net.advertised else None
    named = [f"{one.protocol}://{one.advertised}" for one in _parsed(net) if one.advertised]
    return tuple(named) or None


def _parsed(net: NetConfig) -> tuple[ListenerConfig, ...]:
    from ottla.net.listener_config import parse_listeners

    return parse_listeners(net.listeners)
