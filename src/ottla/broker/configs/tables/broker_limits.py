"""Broker configs: limits of requests, connections and replication."""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition
from ottla.broker.configs.rules import at_least

_ANY_RATE: Final = (1 << 63) - 1

LIMITS: Final = (
    Definition(
        name="socket.request.max.bytes",
        type=ConfigType.INT,
        default=100 << 20,
        is_read_only=True,
        documentation="The maximum request size; a client that sends a larger one is disconnected.",
    ),
    Definition(
        name="fetch.max.bytes",
        type=ConfigType.INT,
        default=55 << 20,
        is_read_only=True,
        documentation="The maximum size of a fetch response.",
    ),
    Definition(
        name="max.connections",
        type=ConfigType.INT,
        default=20_000,
        is_read_only=True,
        documentation="The maximum number of connections.",
    ),
    Definition(
        name="max.connections.per.ip",
        type=ConfigType.INT,
        default=20_000,
        is_read_only=True,
        documentation="The maximum number of connections from one address.",
    ),
    Definition(
        name="max.connections.per.ip.overrides",
        type=ConfigType.STRING,
        default="",
        is_read_only=True,
        documentation="Overrides of max.connections.per.ip for single addresses.",
    ),
    Definition(
        name="connections.max.idle.ms",
        type=ConfigType.LONG,
        default=600_000,
        is_read_only=True,
        documentation="How long a connection may be idle before it is closed.",
    ),
    Definition(
        name="max.incremental.fetch.session.cache.slots",
        type=ConfigType.INT,
        default=1000,
        is_read_only=True,
        documentation="The maximum number of incremental fetch sessions (KIP-227).",
    ),
    Definition(
        name="max.request.partition.size.limit",
        type=ConfigType.INT,
        default=2000,
        is_read_only=True,
        documentation="The maximum number of partitions in a DescribeTopicPartitions response.",
    ),
)

REPLICAS: Final = (
    Definition(
        name="replica.lag.time.max.ms",
        type=ConfigType.LONG,
        default=30_000,
        is_read_only=True,
        documentation="How long a follower may lag before it is removed from the ISR.",
    ),
    Definition(
        name="auto.leader.rebalance.enable",
        type=ConfigType.BOOLEAN,
        default=True,
        is_read_only=True,
        documentation="Whether preferred leaders are elected automatically.",
    ),
    Definition(
        name="controlled.shutdown.enable",
        type=ConfigType.BOOLEAN,
        default=True,
        is_read_only=True,
        documentation="Whether a broker transfers leadership before it stops.",
    ),
    Definition(
        name="leader.replication.throttled.rate",
        type=ConfigType.LONG,
        default=_ANY_RATE,
        rule=at_least(0),
        is_hidden=True,
        documentation=(
            "The bytes per second that this broker sends to the replicas in leader.replication.throttled.replicas "
            "of a topic. Set by reassignment tools."
        ),
    ),
    Definition(
        name="follower.replication.throttled.rate",
        type=ConfigType.LONG,
        default=_ANY_RATE,
        rule=at_least(0),
        is_hidden=True,
        documentation=(
            "The bytes per second that this broker fetches for the replicas in "
            "follower.replication.throttled.replicas of a topic. Set by reassignment "
            "tools."
        ),
    ),
    Definition(
        name="replica.alter.log.dirs.io.max.bytes.per.second",
        type=ConfigType.LONG,
        default=_ANY_RATE,
        rule=at_least(0),
        is_hidden=True,
        documentation="The bytes per second that may be copied between data folders of this broker.",
    ),
)
